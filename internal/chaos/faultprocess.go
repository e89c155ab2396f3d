package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// killed is a kill -9. The process starts again after a pause.
type killed struct {
	victim
	pause time.Duration
}

func drawKilled(r *rand.Rand) fault {
	pause := time.Duration(0)
	switch r.IntN(4) {
	case 0:
		pause = between(r, 0, time.Second)
	case 1:
		pause = sessionTimeout + between(r, 0, time.Second)
	}
	return killed{anyone(r), pause}
}

func (killed) kind() string     { return "kill -9" }
func (f killed) String() string { return fmt.Sprintf("kill -9, back after %v", f.pause) }

func (f killed) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	s.change(func() { s.pause = f.pause })
	l.kill()
	return true
}

// caught is a kill -9 or a SIGSTOP at the moment at which a message of the process's is on its way: a request that the broker
// still gets, or an answer that never comes.
type caught struct {
	victim
	key    int16
	answer bool
	freeze time.Duration // 0 kills
}

func drawCaught(r *rand.Rand) fault {
	keys := []int16{wire.EndTxn, wire.EndTxn, wire.EndTxn, wire.Produce, wire.TxnOffsetCommit, wire.AddPartitions, wire.InitProducerID, wire.JoinGroup, wire.SyncGroup}
	f := caught{victim: anyone(r), key: keys[r.IntN(len(keys))], answer: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		f.freeze = max(sessionTimeout, transactionTimeout) + between(r, 500*time.Millisecond, 2*time.Second)
	}
	return f
}

func (f caught) kind() string {
	how, when := "kill -9", "request"
	if f.freeze > 0 {
		how = "SIGSTOP"
	}
	if f.answer {
		when = "answer"
	}
	return fmt.Sprintf("%s at %s's %s", how, wire.Names[f.key], when)
}

func (f caught) String() string {
	if f.freeze > 0 {
		return fmt.Sprintf("%s for %v", f.kind(), f.freeze)
	}
	return f.kind()
}

func (f caught) strike(ctx context.Context, e *experiment) bool {
	e.broker.works()
	s := f.slot(e)
	e.tell("%s: %s", s, f)
	over := make(chan struct{})
	rule := wire.Rule{Key: f.key, Action: wire.PassRequest, Applied: make(chan struct{})}
	if f.answer {
		rule.Action = wire.LoseAnswer
	}
	met := false
	rule.Do = func() {
		defer close(over)
		if l := s.current(); l != nil {
			met = true
			f.stop(ctx, s, l)
		}
	}
	s.proxy.Arm(&rule)
	select {
	case <-rule.Applied:
		<-over
		return met
	case <-time.After(metWithin):
	case <-ctx.Done():
	}
	return false
}

func (f caught) stop(ctx context.Context, s *slot, l *life) {
	if f.freeze == 0 {
		l.kill()
		return
	}
	l.signal(syscall.SIGSTOP) // at once; the message goes on meanwhile
	go l.freeze(ctx, f.freeze)
}

// frozen is a SIGSTOP and, after a time, a SIGCONT.
type frozen struct {
	victim
	time time.Duration
}

func drawFrozen(r *rand.Rand) fault {
	d := max(sessionTimeout, transactionTimeout) + between(r, 500*time.Millisecond, 2*time.Second)
	if r.IntN(4) == 0 {
		d = between(r, 100*time.Millisecond, sessionTimeout)
	}
	return frozen{anyone(r), d}
}

func (f frozen) kind() string {
	if f.time > sessionTimeout {
		return "SIGSTOP for longer than the timeouts"
	}
	return "SIGSTOP"
}

func (f frozen) String() string { return fmt.Sprintf("SIGSTOP for %v", f.time) }

func (f frozen) strike(ctx context.Context, e *experiment) bool {
	_, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	l.freeze(ctx, f.time)
	return true
}

// crashed is a function of the user's that panics, or ends its goroutine.
type crashed struct {
	victim
	how   string
	steps int // calls until then
}

func drawCrashed(r *rand.Rand) fault {
	return crashed{anyone(r), []string{crashPanic, crashGoexit}[r.IntN(2)], r.IntN(200)}
}

func (f crashed) kind() string   { return f.how + " in a user's function" }
func (f crashed) String() string { return fmt.Sprintf("%s, at call %d", f.kind(), f.steps) }

func (f crashed) strike(ctx context.Context, e *experiment) bool {
	_, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	l.dooms(f.how)
	if _, err := fmt.Fprintln(l.stdin, f.how, f.steps); err != nil {
		return false
	}
	return l.hears(ctx, crashing, metWithin)
}

// slow is a function of the user's that takes its time; the rest of the process works.
type slow struct {
	victim
	time time.Duration
}

func drawSlow(r *rand.Rand) fault {
	return slow{anyone(r), between(r, 200*time.Millisecond, 6*time.Second)}
}

func (f slow) kind() string {
	if f.time > transactionTimeout {
		return "a user's function takes longer than the timeouts"
	}
	return "a user's function takes long"
}

func (f slow) String() string { return fmt.Sprintf("a user's function takes %v", f.time) }

func (f slow) strike(ctx context.Context, e *experiment) bool {
	_, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	if _, err := fmt.Fprintln(l.stdin, crashSleep, f.time.Milliseconds()); err != nil {
		return false
	}
	met := l.hears(ctx, crashing, metWithin)
	if met {
		wait(ctx, f.time)
	}
	return met
}

// restarted is a stop in order and a new start.
type restarted struct{ victim }

func drawRestarted(r *rand.Rand) fault { return restarted{anyone(r)} }

func (restarted) kind() string   { return "stop and start" }
func (restarted) String() string { return "stop and start" }

func (f restarted) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	e.stop(s, l)
	return true
}

// rolled is a stop and start of all processes, one after the other.
type rolled struct{}

func drawRolled(*rand.Rand) fault { return rolled{} }

func (rolled) kind() string   { return "rolling restart" }
func (rolled) String() string { return "rolling restart" }

func (f rolled) strike(ctx context.Context, e *experiment) bool {
	e.tell("%s", f)
	for _, s := range e.wanted() {
		if l := s.alive(ctx, metWithin); l != nil {
			e.stop(s, l)
			s.alive(ctx, metWithin)
		}
	}
	return true
}

// added is one process more.
type added struct{}

func drawAdded(*rand.Rand) fault { return added{} }

func (added) kind() string   { return "process added" }
func (added) String() string { return "process added" }

func (f added) strike(_ context.Context, e *experiment) bool {
	s := e.add()
	if s != nil {
		e.tell("%s: added", s)
	}
	return s != nil
}

// removed is one process less, after a stop in order.
type removed struct{ victim }

func drawRemoved(r *rand.Rand) fault { return removed{anyone(r)} }

func (removed) kind() string   { return "process removed" }
func (removed) String() string { return "process removed" }

func (f removed) strike(ctx context.Context, e *experiment) bool {
	return e.remove(ctx, f.victim) != nil
}
