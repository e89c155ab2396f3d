package processor

import (
	"slices"
	"time"
)

// PunctuationType says which clock calls a punctuation.
type PunctuationType uint8

// The two clocks.
const (
	// StreamTime is the highest record timestamp that the task has seen. The first call comes with the first record, the
	// next when stream time has passed the next multiple of the interval.
	StreamTime PunctuationType = iota
	// WallClockTime is the time of day. The first call comes one interval after scheduling. After a pause there is one
	// call, not one per missed interval; the next is due at a multiple of the interval from the first.
	WallClockTime
)

// Punctuation is a scheduled call. It ends with Cancel or with its task.
type Punctuation struct {
	interval  int64
	next      int64
	node      string
	fn        func(at int64) error
	cancelled bool
}

// Cancel stops the punctuation for good. It may be called from within its own call.
func (p *Punctuation) Cancel() { p.cancelled = true }

// schedule holds a task's punctuations, by clock, in the order of their scheduling.
type schedule [2][]*Punctuation

func (t *Task) schedule(node string, interval time.Duration, clock PunctuationType, fn func(int64) error) *Punctuation {
	every := max(interval.Milliseconds(), 1)
	p := &Punctuation{interval: every, node: node, fn: fn}
	if clock == WallClockTime {
		p.next = t.now + every
	}
	t.timers[clock] = append(t.timers[clock], p)
	return p
}

// NextPunctuation returns the time, in milliseconds since 1970, of the next wall-clock punctuation; false if there is none.
func (t *Task) NextPunctuation() (int64, bool) {
	next, any := int64(0), false
	for _, p := range t.timers[WallClockTime] {
		if !p.cancelled && (!any || p.next < next) {
			next, any = p.next, true
		}
	}
	return next, any
}

// punctuate calls what is due at the given time, each punctuation as a step of its own.
func (t *Task) punctuate(clock PunctuationType, at int64) error {
	for _, p := range t.timers[clock] { // those scheduled meanwhile wait for the next round
		if p.cancelled || p.next > at {
			continue
		}
		p.next += p.interval * ((at-p.next)/p.interval + 1)
		t.record, t.inputOf, t.recordTime, t.node = nil, nil, at, t.spec.index(p.node)
		if err := t.step(func() error { return Failed(p.node, KindProcess, p.fn(at)) }); err != nil {
			return err
		}
		t.punctuated = true
		t.Counters.Punctuations++
	}
	t.timers[clock] = slices.DeleteFunc(t.timers[clock], func(p *Punctuation) bool { return p.cancelled })
	return nil
}
