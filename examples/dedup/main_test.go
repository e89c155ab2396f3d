package main

import (
	"testing"

	"github.com/millrace-streams/millrace/examples/internal/exampletest"
)

const want = about + `

reads:  payments
writes: payments-once

09:00  ann p1: 30
       => payments-once  ann p1: 30
09:01  bob p2: 12
       => payments-once  bob p2: 12
09:02  ann p1: 30             (sent again: dropped)
09:10  ann p3: 30             (the same amount, but another payment)
       => payments-once  ann p3: 30
09:40  ann p1: 30             (and again, 40 minutes after the first: dropped)
09:45  bob p4: 7
       => payments-once  bob p4: 7
09:41  bob p4: 7              (the original is overtaken by its repetition: dropped)
10:00  ann p1: 55             (an hour after the first: the id counts as a new one)
       => payments-once  ann p1: 55

8 records in, 5 records out to payments-once
`

func TestProgram(t *testing.T) {
	if got := exampletest.Run(t, parse, run); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
