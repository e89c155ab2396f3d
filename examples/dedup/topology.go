package main

import (
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Payment is the value of a record whose key is the account that pays. A client that has got no answer sends a payment again,
// with the same id.
type Payment struct {
	ID     string    `json:"id"`
	Amount int64     `json:"amount"`
	At     time.Time `json:"at"`
}

// topics are the input and the output.
type topics struct {
	in, out topology.Topic[string, Payment]
}

// newTopics declares the topics. A payment was sent when it says so, whenever it was written.
func newTopics(in, out string) topics {
	at := func(_ string, p Payment, _, _ int64) int64 { return p.At.UnixMilli() }
	return topics{
		in:  topology.NewTopic(in, serde.String, serde.JSON[Payment]()).WithEventTime(at),
		out: topology.NewTopic(out, serde.String, serde.JSON[Payment]()),
	}
}

// span is how long an id is remembered: of two payments with the same id that are less than this apart, in whichever order
// they come, one goes through.
const span = time.Hour

// once declares the topology. The payments of an account are in one partition, so all with the same id meet; were the id to
// come from several accounts, topology.SelectKey and topology.Through would have to bring them together first.
func (t topics) once() (*topology.Topology, error) {
	var Seen = store.NewKeyValue("seen", serde.String, serde.Int64)

	b := topology.NewBuilder()
	id := func(_ string, p Payment) string { return p.ID }
	topology.To(topology.Deduplicate(topology.From(b, t.in), Seen, id, span), t.out)
	return b.Build()
}
