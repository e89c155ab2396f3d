package topology_test

import (
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// The declarations that tests and examples share.
var (
	in     = topology.NewTopic("in", serde.String, serde.String)
	in2    = topology.NewTopic("in2", serde.String, serde.String)
	in3    = topology.NewTopic("in3", serde.String, serde.String)
	out    = topology.NewTopic("out", serde.String, serde.String)
	out2   = topology.NewTopic("out2", serde.String, serde.String)
	totals = topology.NewTopic("totals", serde.String, serde.Int64)

	byWord = topology.NewRepartition("by-word", serde.String, serde.String)
	rekey  = topology.NewRepartition("rekey", serde.String, serde.String)

	counts = store.NewKeyValue("counts", serde.String, serde.Int64)
	texts  = store.NewKeyValue("texts", serde.String, serde.String)
	users  = store.NewKeyValue("users", serde.String, serde.String)

	jsonRows = store.NewKeyValue("json", serde.String, serde.JSON[map[string]int]())
)
