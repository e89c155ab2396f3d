package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// outage is a broker that ends, in order or by kill -9, and is started again after a pause.
type outage struct {
	how   string // "stop" or "kill"
	pause time.Duration
}

func drawOutage(r *rand.Rand) fault {
	f := outage{how: []string{"stop", "kill"}[r.IntN(2)]}
	if r.IntN(3) == 0 {
		f.pause = between(r, 0, 5*time.Second)
	}
	return f
}

func (f outage) kind() string {
	return map[string]string{"stop": "broker restart", "kill": "broker kill -9 and start"}[f.how]
}
func (f outage) String() string { return fmt.Sprintf("%s after %v", f.kind(), f.pause) }

func (f outage) strike(ctx context.Context, e *experiment) bool {
	e.broker.faults.Lock() // one at a time
	defer e.broker.faults.Unlock()
	if ctx.Err() != nil {
		return false
	}
	e.tell("%s", f)
	e.broker.during.Store(fewDuring)
	err := e.broker.command(ctx, f.how)
	if err == nil {
		wait(ctx, f.pause)
		err = e.broker.command(ctx, "start")
	}
	if err != nil && ctx.Err() == nil {
		e.story.fail("%v", err)
	}
	e.tell("broker is back")
	return err == nil
}

// stall is a broker that does nothing for a while, as in a long pause of its garbage collector.
type stall struct{ time time.Duration }

func drawStall(r *rand.Rand) fault { return stall{between(r, 200*time.Millisecond, 4*time.Second)} }

func (stall) kind() string     { return "broker stalled" }
func (f stall) String() string { return fmt.Sprintf("broker stalled for %v", f.time) }

func (f stall) strike(ctx context.Context, e *experiment) bool {
	e.broker.faults.Lock()
	defer e.broker.faults.Unlock()
	if ctx.Err() != nil {
		return false
	}
	e.tell("%s", f)
	goOn, err := e.broker.stall()
	if err != nil {
		e.story.fail("%v", err)
		return false
	}
	wait(ctx, f.time)
	goOn()
	return true
}
