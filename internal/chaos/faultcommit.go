package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// undone is a transaction that is never committed, though its process has asked for that: the EndTxn does not arrive, nor does
// what the process asks of the transaction coordinator afterwards, for so long that the broker aborts the transaction by its
// timeout; or the process is killed meanwhile, and the next one aborts it. All else arrives: the process stays a member of
// its group and keeps its tasks. If it had any request answered in time, it would commit the same transaction after all, and
// if it were no member, others would read the records again: both hide that it took a lost answer for a commit.
type undone struct {
	victim
	kill time.Duration // after this; 0 leaves the process alone
}

// ofTransactions are the requests to the coordinator of transactions. The first is the one that the fault begins with.
var ofTransactions = []int16{wire.EndTxn, wire.AddPartitions, wire.AddOffsets, wire.InitProducerID}

func drawUndone(r *rand.Rand) fault {
	f := undone{victim: anyone(r)}
	if r.IntN(3) == 0 { // mostly late enough for its stores to be on disk
		f.kill = between(r, 100*time.Millisecond, 2*time.Second)
	}
	return f
}

func (f undone) kind() string {
	if f.kill > 0 {
		return "EndTxn never arrives, then kill -9"
	}
	return "EndTxn never arrives, transaction times out"
}

func (f undone) String() string {
	if f.kill > 0 {
		return fmt.Sprintf("%s after %v", f.kind(), f.kill)
	}
	return f.kind()
}

// strike tries one process after the other: those that have no work to do commit nothing.
func (f undone) strike(ctx context.Context, e *experiment) bool {
	for range fewestProcesses {
		if f.hit(ctx, e) {
			return true
		}
		f.victim++
	}
	return false
}

func (f undone) hit(ctx context.Context, e *experiment) bool {
	e.broker.works()
	s, l, ok := f.met(ctx, e, f)
	if !ok {
		return false
	}
	begun, end := loseTransaction(s.proxy)
	defer end()
	select {
	case <-begun:
	case <-time.After(metWithin):
		return false
	case <-ctx.Done():
		return false
	}
	if f.kill == 0 {
		return wait(ctx, transactionTimeout+abortedWithin)
	}
	wait(ctx, f.kill)
	l.kill()
	return true
}

// abortedWithin is more than a broker takes to look for transactions that have timed out, see brokerSettings.
const abortedWithin = 1500 * time.Millisecond

// loseTransaction loses the next EndTxn, and whatever is asked of the coordinator from then on until end is called. begun is
// closed at the EndTxn.
func loseTransaction(p *wire.Proxy) (begun chan struct{}, end func()) {
	var rules []*wire.Rule
	for _, key := range ofTransactions {
		rules = append(rules, lostAlways(key))
	}
	begun = make(chan struct{})
	rules[0].Applied = begun
	rules[0].Do = sync.OnceFunc(func() { // before the process knows that the message is lost
		for _, r := range rules[1:] {
			p.Arm(r)
		}
	})
	p.Arm(rules[0])
	return begun, func() {
		for _, r := range rules {
			p.Disarm(r)
		}
	}
}
