// Package eos is the commit protocol as a pure state machine: which request comes next, and what an answer means for it.
//
// A [Transaction] is driven by its owner, who asks Next for a [Call], makes the request, tells the [Verdict] with Answer,
// and goes on until the call is Done. Under exactly-once the calls of one commit are
//
//	InitProducer (when there is no valid producer id)  AddPartitions  Produce  AddOffsets  CommitOffsets  EndCommit
//
// where those without content are left out: a commit of offsets alone adds no partitions, one of a punctuation alone
// commits no offsets. The broker's transaction begins with AddPartitions or AddOffsets, so none is open while the
// application is idle or restores. Under at-least-once the calls are Produce and CommitOffsets.
//
// A lost transaction is ended by InitProducer: it makes the broker abort what is open under the transactional id, whoever
// left it, and it fences what may still be under way. Source of the protocol: KIP-98, KIP-360 and KIP-447.
package eos

import (
	"slices"
	"time"

	"github.com/millrace-streams/millrace/processor"
)

// Guarantee is the processing guarantee.
type Guarantee uint8

// The guarantees; the zero value is exactly-once.
const (
	ExactlyOnce Guarantee = iota
	AtLeastOnce
)

// String returns Kafka Streams' name of the guarantee.
func (g Guarantee) String() string {
	if g == AtLeastOnce {
		return "at_least_once"
	}
	return "exactly_once"
}

// Kind is the kind of a request.
type Kind uint8

// The requests, in the order in which a commit makes them.
const (
	InitProducer  Kind = iota // InitProducerId: a new epoch; aborts what is open
	AddPartitions             // AddPartitionsToTxn
	Produce                   // all batches that are not yet acknowledged, in order, with the sequence numbers they had
	AddOffsets                // AddOffsetsToTxn
	CommitOffsets             // TxnOffsetCommit with the group's member and generation; OffsetCommit under at-least-once
	EndCommit                 // EndTxn, commit
	Done                      // nothing is left to do: see Result
)

// Call is the request to make next, not before Delay has passed.
type Call struct {
	Kind  Kind
	Delay time.Duration
}

// Verdict is what the answer to a call means.
type Verdict uint8

// The verdicts.
const (
	OK       Verdict = iota
	Retry            // refused for now, nothing happened: make the same call again
	NoAnswer         // it may or may not have happened: make the same call again, all of them are idempotent
	Lost             // fenced, timed out, not a member any more: this transaction cannot be committed
	Broken           // no retry can help: not authorised, record too large
)

// Outcome is how a commit ended.
type Outcome uint8

// The outcomes.
const (
	// Committed: all of it is durable.
	Committed Outcome = iota
	// Aborted: none of it is durable. Drop it, go back to the last committed positions and go on.
	Aborted
	// Unknown: EndCommit was sent, and then it became impossible to learn how it ended. Reopen the tasks from what the
	// broker holds.
	Unknown
	// Failed: none of it is durable, and trying again is of no use.
	Failed
)

// String names the outcome.
func (o Outcome) String() string {
	return [...]string{Committed: "committed", Aborted: "aborted", Unknown: "unknown", Failed: "failed"}[o]
}

// Result is the end of a commit.
type Result struct {
	Outcome Outcome
	Err     error // why, unless committed
}

// Backoff bounds for calls that are made again.
const (
	firstBackoff = time.Millisecond
	lastBackoff  = 250 * time.Millisecond
)

// Transaction is the protocol of one producer over its whole life; commits follow one another. The zero value is ready
// for exactly-once.
type Transaction struct {
	Guarantee Guarantee

	records, offsets bool // what the commit holds
	next             Kind
	initialised      bool // the producer id and epoch are believed to be valid
	ending           bool // an EndCommit got no answer
	lost             bool // InitProducer is due to end a lost transaction
	backoff          time.Duration
	result           Result
}

// Begin starts a commit. The one before must be done.
func (t *Transaction) Begin(c *processor.Commit) {
	t.records = len(c.Records) > 0 || slices.ContainsFunc(c.Writes, func(w processor.Writes) bool { return w.Set.Mirrors() })
	t.offsets = len(c.Positions) > 0
	t.ending, t.lost, t.backoff, t.result = false, false, 0, Result{}
	t.next = t.after(InitProducer)
	if t.Guarantee == ExactlyOnce && !t.initialised && t.next != Done {
		t.next = InitProducer
	}
}

// Fence starts nothing but an InitProducer: at the start of a producer's life it aborts what a predecessor left open.
func (t *Transaction) Fence() {
	t.records, t.offsets, t.ending, t.lost, t.backoff, t.result = false, false, false, false, 0, Result{}
	t.next = InitProducer
}

// Next returns the call to make.
func (t *Transaction) Next() Call { return Call{Kind: t.next, Delay: t.backoff} }

// Result returns how the commit ended. It is meaningful once Next is Done.
func (t *Transaction) Result() Result { return t.result }

// Answer tells the machine how the call that Next named went. err says why for any verdict but OK.
func (t *Transaction) Answer(v Verdict, err error) {
	switch v {
	case OK:
		t.succeeded()
	case Retry, NoAnswer:
		t.ending = t.ending || v == NoAnswer && t.next == EndCommit
		t.backoff = min(max(2*t.backoff, firstBackoff), lastBackoff)
	case Lost:
		t.lose(err)
	case Broken:
		t.broke(err)
	}
}

// Cancel gives up, as when the process must end: the answer is as certain as what is known by now.
func (t *Transaction) Cancel(err error) {
	switch {
	case t.lost || t.next == Done:
	case t.next == EndCommit: // it may be on its way
		t.result = Result{Outcome: Unknown, Err: err}
	default:
		t.result = Result{Outcome: Aborted, Err: err}
	}
	t.next, t.initialised = Done, false
}

func (t *Transaction) succeeded() {
	t.backoff = 0
	if t.next != InitProducer {
		t.next = t.after(t.next)
		return
	}
	t.initialised = true
	if t.lost {
		t.next = Done
		return
	}
	t.next = t.after(InitProducer)
}

// lose ends a transaction that cannot be committed. The producer starts over before anything else is sent, so that no
// open transaction is left to block the readers.
func (t *Transaction) lose(err error) {
	if t.next == InitProducer { // fenced while starting over: another try gets a newer epoch
		t.backoff = min(max(2*t.backoff, firstBackoff), lastBackoff)
		return
	}
	t.result = Result{Outcome: Aborted, Err: err}
	if t.ending {
		t.result.Outcome = Unknown
	}
	t.initialised, t.lost, t.backoff = false, true, 0
	t.next = InitProducer
	if t.Guarantee == AtLeastOnce {
		t.next = Done
	}
}

// broke ends a transaction for which trying again is of no use. It is aborted like a lost one, unless that is what failed.
func (t *Transaction) broke(err error) {
	starting := t.next == InitProducer
	if !t.lost {
		t.result = Result{Outcome: Failed, Err: err}
		if t.ending {
			t.result.Outcome = Unknown
		}
	}
	t.initialised, t.lost, t.backoff = false, true, 0
	t.next = InitProducer
	if starting || t.Guarantee == AtLeastOnce {
		t.next = Done
	}
}

// after returns the call that follows k, leaving out those without content.
func (t *Transaction) after(k Kind) Kind {
	eos := t.Guarantee == ExactlyOnce
	switch {
	case k < AddPartitions && eos && t.records:
		return AddPartitions
	case k < Produce && t.records:
		return Produce
	case k < AddOffsets && eos && t.offsets:
		return AddOffsets
	case k < CommitOffsets && t.offsets:
		return CommitOffsets
	case k < EndCommit && eos && (t.records || t.offsets):
		return EndCommit
	}
	return Done
}
