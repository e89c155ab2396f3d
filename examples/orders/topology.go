package main

import (
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Customer is a row of the table of customers, whose key is the customer's id.
type Customer struct {
	Name string `json:"name"`
	City string `json:"city"`
}

// Order is a row of the table of orders, whose key is the order's id. Customer is the id of its customer, the foreign key.
type Order struct {
	Customer string `json:"customer"`
	Items    string `json:"items"`
}

// Delivery is an order with its customer. Its key is the order's id. To is nil when there is no such customer.
type Delivery struct {
	Items string    `json:"items"`
	To    *Customer `json:"to"`
}

// topics are the inputs and the output, all of them tables: a record is the newest row of its key, one without a value
// deletes the row.
type topics struct {
	customers  topology.Topic[string, Customer]
	orders     topology.Topic[string, Order]
	deliveries topology.Topic[string, Delivery]
}

func newTopics(customers, orders, deliveries string) topics {
	return topics{
		customers:  topology.NewTopic(customers, serde.String, serde.JSON[Customer]()),
		orders:     topology.NewTopic(orders, serde.String, serde.JSON[Order]()),
		deliveries: topology.NewTopic(deliveries, serde.String, serde.JSON[Delivery]()),
	}
}

// ordersOfCustomers declares the topology: each order is joined with the customer that it names, and the join follows the
// changes of both. Orders and customers need not be partitioned alike, for the join asks for the customers of its orders
// through two topics of its own, <app>-order-customer-subscription-registration-topic and -response-topic.
func (t topics) ordersOfCustomers() (*topology.Topology, error) {
	var (
		Customers = store.NewKeyValue("customers", serde.String, serde.JSON[Customer]())
		Orders    = store.NewKeyValue("orders", serde.String, serde.JSON[Order]())
		ByOrder   = topology.NewForeignKey("order-customer", Orders, Customers)
	)
	b := topology.NewBuilder()
	orders, customers := topology.Table(b, t.orders, Orders), topology.Table(b, t.customers, Customers)
	deliveries := topology.LeftJoinForeign(orders, customers, ByOrder, customerOf, delivery)
	topology.To(topology.Changes(deliveries), t.deliveries)
	return b.Build()
}

// customerOf returns the foreign key of an order; false if it names no customer.
func customerOf(_ string, o Order) (id string, ok bool) { return o.Customer, o.Customer != "" }

// delivery joins an order with its customer, if that exists.
func delivery(o Order, c Customer, exists bool) Delivery {
	if !exists {
		return Delivery{Items: o.Items}
	}
	return Delivery{Items: o.Items, To: &c}
}
