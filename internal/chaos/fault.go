package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// fault is one thing that goes wrong. strike makes it happen, and returns when it is over: what is left to do then is the
// application's. met is false if there was nothing to break, which does not count.
type fault interface {
	kind() string
	String() string
	strike(ctx context.Context, e *experiment) (met bool)
}

// victim is the process that a fault is about, by the slot's number.
type victim int

func (v victim) slot(e *experiment) *slot { return e.slots[v] }

// met is how long a fault waits for its victim to run, and for what is armed to be met.
const metWithin = 5 * time.Second

// killed is a kill -9. The process starts again after a pause.
type killed struct {
	victim
	pause time.Duration
}

func (killed) kind() string { return "kill -9" }
func (f killed) String() string {
	return fmt.Sprintf("kill -9 of process %d, back after %v", f.victim, f.pause)
}

func (f killed) strike(ctx context.Context, e *experiment) bool {
	s := f.slot(e)
	l := s.alive(ctx, metWithin)
	if l == nil {
		return false
	}
	s.change(func() { s.pause = f.pause })
	l.kill()
	return true
}

// frozen is a SIGSTOP and, after a time, a SIGCONT.
type frozen struct {
	victim
	time time.Duration
}

func (f frozen) kind() string {
	if f.time > sessionTimeout {
		return "SIGSTOP for longer than the timeouts"
	}
	return "SIGSTOP"
}

func (f frozen) String() string { return fmt.Sprintf("process %d is stopped for %v", f.victim, f.time) }

func (f frozen) strike(ctx context.Context, e *experiment) bool {
	l := f.slot(e).alive(ctx, metWithin)
	if l == nil {
		return false
	}
	l.signal(syscall.SIGSTOP)
	select {
	case <-time.After(f.time):
	case <-l.over:
	case <-ctx.Done():
	}
	l.signal(syscall.SIGCONT)
	return true
}

// lossy is a message on the network of one process that does not arrive as it should.
type lossy struct {
	victim
	rule wire.Rule
}

func (f lossy) kind() string { return wire.Names[f.rule.Key] + ": " + f.rule.Action.String() }

func (f lossy) String() string {
	text := fmt.Sprintf("process %d, %s, %d times", f.victim, f.kind(), max(f.rule.Times, 1))
	if f.rule.Action == wire.DelayAnswer {
		text += fmt.Sprintf(", by %v", f.rule.Delay)
	}
	return text
}

func (f lossy) strike(ctx context.Context, e *experiment) bool {
	rule := f.rule
	rule.Applied = make(chan struct{})
	f.slot(e).proxy.Arm(&rule)
	select {
	case <-rule.Applied:
		return true
	case <-time.After(metWithin):
	case <-ctx.Done():
	}
	return false
}

// draw makes a fault of a kind. The slots that have a process are given; their number is at least minProcesses.
type draw func(r *rand.Rand, processes int) fault

func drawKilled(r *rand.Rand, processes int) fault {
	pause := time.Duration(0)
	switch r.IntN(4) {
	case 0:
		pause = between(r, 0, time.Second)
	case 1:
		pause = sessionTimeout + between(r, 0, time.Second)
	}
	return killed{victim(r.IntN(processes)), pause}
}

func drawFrozen(r *rand.Rand, processes int) fault {
	d := max(sessionTimeout, transactionTimeout) + between(r, 500*time.Millisecond, 2*time.Second)
	if r.IntN(4) == 0 {
		d = between(r, 100*time.Millisecond, sessionTimeout)
	}
	return frozen{victim(r.IntN(processes)), d}
}

// lossyKeys are the requests whose messages are lost, some more often than others.
var lossyKeys = []int16{
	wire.EndTxn, wire.EndTxn, wire.EndTxn, wire.EndTxn, wire.Produce, wire.Produce, wire.Produce, wire.TxnOffsetCommit, wire.TxnOffsetCommit,
	wire.Heartbeat, wire.Heartbeat, wire.Fetch, wire.Fetch, wire.AddPartitions, wire.AddOffsets,
}

func drawLossy(r *rand.Rand, processes int) fault {
	actions := []wire.Action{wire.LoseRequest, wire.LoseAnswer, wire.LoseAnswer, wire.CutAnswer, wire.DelayAnswer, wire.DelayAnswer}
	f := lossy{victim: victim(r.IntN(processes))}
	f.rule.Key, f.rule.Action, f.rule.Times = lossyKeys[r.IntN(len(lossyKeys))], actions[r.IntN(len(actions))], 1+r.IntN(2)
	if f.rule.Action == wire.DelayAnswer {
		f.rule.Delay = between(r, 50*time.Millisecond, 2*time.Second)
	}
	return f
}

// between returns a duration in whole milliseconds.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64((to-from)/time.Millisecond)))*time.Millisecond
}
