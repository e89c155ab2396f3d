package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// lossy is a message on the network of one process that does not arrive as it should.
type lossy struct {
	victim
	rule wire.Rule
}

// lossyKeys are the requests whose messages are lost, some more often than others.
var lossyKeys = []int16{
	wire.EndTxn, wire.EndTxn, wire.EndTxn, wire.EndTxn, wire.Produce, wire.Produce, wire.Produce, wire.TxnOffsetCommit, wire.TxnOffsetCommit,
	wire.Heartbeat, wire.Heartbeat, wire.Fetch, wire.Fetch, wire.AddPartitions, wire.AddOffsets, wire.InitProducerID, wire.JoinGroup,
	wire.SyncGroup, wire.OffsetFetch, wire.ListOffsets,
}

var lossyActions = []wire.Action{
	wire.LoseRequest, wire.LoseRequest, wire.LoseAnswer, wire.LoseAnswer, wire.LoseAnswer, wire.CutAnswer, wire.DelayAnswer,
	wire.DelayAnswer, wire.SwallowAnswer,
}

func drawLossy(r *rand.Rand) fault {
	f := lossy{victim: anyone(r)}
	f.rule.Key, f.rule.Action, f.rule.Times = lossyKeys[r.IntN(len(lossyKeys))], lossyActions[r.IntN(len(lossyActions))], 1+r.IntN(2)
	if f.rule.Action == wire.DelayAnswer {
		f.rule.Delay = between(r, 50*time.Millisecond, 2*time.Second)
		if r.IntN(4) == 0 {
			f.rule.Delay += transactionTimeout
		}
	}
	return f
}

func (f lossy) kind() string { return wire.Names[f.rule.Key] + ": " + f.rule.Action.String() }

func (f lossy) String() string {
	text := f.kind()
	if f.rule.Action == wire.DelayAnswer {
		text += fmt.Sprintf(" by %v", f.rule.Delay)
	}
	if f.rule.Times > 1 {
		text += fmt.Sprintf(", %d times", f.rule.Times)
	}
	return text
}

func (f lossy) strike(ctx context.Context, e *experiment) bool {
	e.broker.works() // else nothing has an answer
	rule, s := f.rule, f.slot(e)
	rule.Applied = make(chan struct{})
	e.tell("%s: %s", s, f)
	s.proxy.Arm(&rule)
	select {
	case <-rule.Applied:
		return true
	case <-time.After(metWithin):
	case <-ctx.Done():
	}
	return false
}

// split is a network that passes nothing on for a while; no connection ends.
type split struct {
	victim
	time time.Duration
}

func drawSplit(r *rand.Rand) fault {
	return split{anyone(r), between(r, 200*time.Millisecond, 6*time.Second)}
}

func (split) kind() string     { return "network held up" }
func (f split) String() string { return fmt.Sprintf("network held up for %v", f.time) }

func (f split) strike(ctx context.Context, e *experiment) bool {
	s := f.slot(e)
	e.tell("%s: %s", s, f)
	s.proxy.HoldUp()
	wait(ctx, f.time)
	s.proxy.PassOn()
	return true
}

// cut ends all connections of a process.
type cut struct{ victim }

func drawCut(r *rand.Rand) fault { return cut{anyone(r)} }

func (cut) kind() string   { return "connections cut" }
func (cut) String() string { return "connections cut" }

func (f cut) strike(_ context.Context, e *experiment) bool {
	s := f.slot(e)
	e.tell("%s: %s", s, f)
	return s.proxy.Cut() > 0
}
