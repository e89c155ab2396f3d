package main

import (
	"fmt"

	"github.com/millrace-streams/millrace/examples/internal/example"
)

// sample returns some orders and customers, and changes to them.
func (t topics) sample() []example.Input {
	var all []example.Input
	customer := func(id, name, city, remark string) {
		says := fmt.Sprintf("customer %s: %s, %s", id, name, city)
		all = append(all, example.Value(t.customers, id, Customer{name, city}, says, remark))
	}
	order := func(id, customer, items, remark string) {
		says := fmt.Sprintf("order %s: %s, by %s", id, items, customer)
		all = append(all, example.Value(t.orders, id, Order{customer, items}, says, remark))
	}
	customer("c1", "Ann", "Oslo", "")
	customer("c2", "Bob", "Rome", "")
	order("o1", "c1", "2 books", "")
	order("o2", "c1", "1 lamp", "")
	order("o3", "c3", "1 desk", "its customer comes later")
	customer("c1", "Ann", "Bergen", "Ann moves: all of her orders change")
	order("o2", "c2", "1 lamp", "the order is Bob's now")
	customer("c3", "Cid", "Lima", "o3 has waited for him")
	all = append(all,
		example.Delete(t.customers, "c2", "customer c2: deleted", ""),
		example.Delete(t.orders, "o1", "order o1: deleted", ""))
	return all
}
