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
	then string        // what happens to the process a little later, when it believes what it does then
	in   time.Duration // how much later
}

// What can happen to a process that has lost a message.
const (
	thenKill   = "kill -9"
	thenFreeze = "SIGSTOP for longer than the timeouts"
)

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
	if r.IntN(4) == 0 {
		f.then, f.in = []string{thenKill, thenKill, thenFreeze}[r.IntN(3)], between(r, 0, 200*time.Millisecond)
	}
	return f
}

func (f lossy) kind() string {
	text := wire.Names[f.rule.Key] + ": " + f.rule.Action.String()
	if f.then != "" {
		text += ", then " + f.then
	}
	return text
}

func (f lossy) String() string {
	text := f.kind()
	if f.rule.Action == wire.DelayAnswer {
		text += fmt.Sprintf(" by %v", f.rule.Delay)
	}
	if f.rule.Times > 1 {
		text += fmt.Sprintf(", %d times", f.rule.Times)
	}
	if f.then != "" {
		text += fmt.Sprintf(", in %v", f.in)
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
	case <-time.After(metWithin):
		return false
	case <-ctx.Done():
		return false
	}
	if l := s.current(); f.then != "" && l != nil {
		wait(ctx, f.in)
		f.follow(ctx, l)
	}
	return true
}

func (f lossy) follow(ctx context.Context, l *life) {
	if f.then == thenKill {
		l.kill()
		return
	}
	l.freeze(ctx, max(sessionTimeout, transactionTimeout)+time.Second)
}

// lostAlways loses all requests of a kind until it is disarmed.
func lostAlways(key int16) *wire.Rule {
	return &wire.Rule{Key: key, Action: wire.LoseRequest, Times: wire.Always}
}

// outrun is a process that reads nothing while others go on, until one of them is killed and its tasks have gone to whom is
// left: what the process has of the changelogs, as a standby too, is not all that was committed.
type outrun struct {
	victim
	time time.Duration // from then until the kill
}

func drawOutrun(r *rand.Rand) fault {
	return outrun{anyone(r), between(r, 500*time.Millisecond, 2*time.Second)}
}

func (outrun) kind() string     { return "Fetch never arrives, then kill -9 of another" }
func (f outrun) String() string { return fmt.Sprintf("%s after %v", f.kind(), f.time) }

func (f outrun) strike(ctx context.Context, e *experiment) bool {
	s, _, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	rule := lostAlways(wire.Fetch)
	s.proxy.Arm(rule)
	defer s.proxy.Disarm(rule)
	wait(ctx, f.time)
	other := (f.victim + 1).slot(e)
	l := other.alive(ctx, metWithin)
	if l == nil || other == s {
		return false
	}
	e.tell("%s: killed, its tasks go to others", other)
	other.change(func() { other.pause = sessionTimeout + 4*time.Second })
	l.kill()
	return wait(ctx, sessionTimeout+3*time.Second) // rebalances take a while
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
