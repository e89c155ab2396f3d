package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
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
	s, l, ok := f.alive(ctx, e)
	if !ok {
		return false
	}
	e.tell("%s: %s", s, f)
	s.change(func() { s.pause = f.pause })
	l.kill()
	return true
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
	s, l, ok := f.alive(ctx, e)
	if !ok {
		return false
	}
	e.tell("%s: %s", s, f)
	l.signal(syscall.SIGSTOP)
	select {
	case <-time.After(f.time):
	case <-l.over:
	case <-ctx.Done():
	}
	l.signal(syscall.SIGCONT)
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
	s, l, ok := f.alive(ctx, e)
	if !ok {
		return false
	}
	e.tell("%s: %s", s, f)
	l.dooms(f.how)
	if _, err := fmt.Fprintln(l.stdin, f.how, f.steps); err != nil {
		return false
	}
	return l.hears(ctx, crashing, metWithin)
}

// restarted is a stop in order and a new start.
type restarted struct{ victim }

func drawRestarted(r *rand.Rand) fault { return restarted{anyone(r)} }

func (restarted) kind() string   { return "stop and start" }
func (restarted) String() string { return "stop and start" }

func (f restarted) strike(ctx context.Context, e *experiment) bool {
	s, l, ok := f.alive(ctx, e)
	if !ok {
		return false
	}
	e.tell("%s: %s", s, f)
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
