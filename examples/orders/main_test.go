package main

import (
	"testing"

	"github.com/millrace-streams/millrace/examples/internal/exampletest"
)

const want = about + `

reads:  orders, customers
writes: deliveries

customer c1: Ann, Oslo
customer c2: Bob, Rome
order o1: 2 books, by c1
       => deliveries  o1: 2 books, for Ann in Oslo
order o2: 1 lamp, by c1
       => deliveries  o2: 1 lamp, for Ann in Oslo
order o3: 1 desk, by c3       (its customer comes later)
       => deliveries  o3: 1 desk, customer unknown
customer c1: Ann, Bergen      (Ann moves: all of her orders change)
       => deliveries  o2: 1 lamp, for Ann in Bergen
       => deliveries  o1: 2 books, for Ann in Bergen
order o2: 1 lamp, by c2       (the order is Bob's now)
       => deliveries  o2: 1 lamp, for Bob in Rome
customer c3: Cid, Lima        (o3 has waited for him)
       => deliveries  o3: 1 desk, for Cid in Lima
customer c2: deleted
       => deliveries  o2: 1 lamp, customer unknown
order o1: deleted
       => deliveries  o1: deleted

10 records in, 9 records out to deliveries
`

func TestProgram(t *testing.T) {
	if got := exampletest.Run(t, parse, run); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
