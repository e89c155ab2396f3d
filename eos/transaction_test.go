package eos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/processor"
)

var (
	records   = processor.Commit{Records: [][]processor.Output{{{Topic: "out"}}}}
	positions = processor.Commit{Positions: []processor.Position{{}}}
	both      = processor.Commit{Records: records.Records, Positions: positions.Positions}
)

// run answers every call with OK and returns the calls made.
func run(t *Transaction) []Kind {
	var calls []Kind
	for t.Next().Kind != Done {
		calls = append(calls, t.Next().Kind)
		t.Answer(OK, nil)
	}
	return calls
}

func TestCallsOfACommit(t *testing.T) {
	for _, c := range []struct {
		name      string
		guarantee Guarantee
		commit    processor.Commit
		want      []Kind
	}{
		{"whole", ExactlyOnce, both, []Kind{InitProducer, AddPartitions, Produce, AddOffsets, CommitOffsets, EndCommit}},
		{"offsets only", ExactlyOnce, positions, []Kind{InitProducer, AddOffsets, CommitOffsets, EndCommit}},
		{"punctuation only", ExactlyOnce, records, []Kind{InitProducer, AddPartitions, Produce, EndCommit}},
		{"nothing", ExactlyOnce, processor.Commit{}, nil},
		{"at least once", AtLeastOnce, both, []Kind{Produce, CommitOffsets}},
		{"at least once, offsets only", AtLeastOnce, positions, []Kind{CommitOffsets}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx := &Transaction{Guarantee: c.guarantee}
			tx.Begin(&c.commit)
			if got := run(tx); !slices.Equal(got, c.want) {
				t.Fatalf("first commit made %v, want %v", got, c.want)
			}
			if tx.Result().Outcome != Committed {
				t.Fatalf("got %v", tx.Result())
			}
			tx.Begin(&c.commit)
			want := slices.DeleteFunc(slices.Clone(c.want), func(k Kind) bool { return k == InitProducer })
			if got := run(tx); !slices.Equal(got, want) {
				t.Fatalf("second commit made %v, want %v", got, want)
			}
		})
	}
}

func TestLostAtEveryCallStartsOver(t *testing.T) {
	cause := errors.New("fenced")
	for _, at := range []Kind{AddPartitions, Produce, AddOffsets, CommitOffsets, EndCommit} {
		tx := &Transaction{}
		tx.Begin(&both)
		for tx.Next().Kind != at {
			tx.Answer(OK, nil)
		}
		tx.Answer(Lost, cause)
		if got := run(tx); !slices.Equal(got, []Kind{InitProducer}) {
			t.Fatalf("lost at %d: made %v", at, got)
		}
		if r := tx.Result(); r.Outcome != Aborted || !errors.Is(r.Err, cause) {
			t.Fatalf("lost at %d: %v", at, r)
		}
		tx.Begin(&both)
		if tx.Next().Kind != AddPartitions {
			t.Fatalf("after the loss at %d the producer is not initialised", at)
		}
	}
}

// Field report 8: after an unanswered EndTxn the same request is made until there is a definite answer.
func TestFieldReport8UnansweredEndIsAskedAgain(t *testing.T) {
	begin := func() *Transaction {
		tx := &Transaction{}
		tx.Begin(&both)
		for tx.Next().Kind != EndCommit {
			tx.Answer(OK, nil)
		}
		tx.Answer(NoAnswer, errors.New("timeout"))
		if call := tx.Next(); call.Kind != EndCommit || call.Delay <= 0 {
			t.Fatalf("got %v", call)
		}
		return tx
	}
	tx := begin()
	tx.Answer(Retry, errors.New("concurrent transactions"))
	tx.Answer(OK, nil)
	if tx.Next().Kind != Done || tx.Result().Outcome != Committed {
		t.Fatalf("got %v", tx.Result())
	}
	tx = begin()
	tx.Answer(Lost, errors.New("fenced"))
	run(tx)
	if tx.Result().Outcome != Unknown {
		t.Fatalf("fenced after an unanswered end: got %v", tx.Result())
	}
	tx = begin()
	tx.Answer(Broken, errors.New("not authorised"))
	run(tx)
	if tx.Result().Outcome != Unknown {
		t.Fatalf("broken after an unanswered end: got %v", tx.Result())
	}
}

// What cannot be helped is aborted at once: an open transaction would hold up the readers until it times out.
func TestBrokenIsAborted(t *testing.T) {
	cause := errors.New("record too large")
	tx := &Transaction{}
	tx.Begin(&both)
	for tx.Next().Kind != Produce {
		tx.Answer(OK, nil)
	}
	tx.Answer(Broken, cause)
	if got := run(tx); !slices.Equal(got, []Kind{InitProducer}) {
		t.Fatalf("made %v", got)
	}
	if r := tx.Result(); r.Outcome != Failed || !errors.Is(r.Err, cause) {
		t.Fatalf("got %v", r)
	}
	tx = &Transaction{}
	tx.Begin(&both)
	tx.Answer(Broken, cause) // not even a producer id is to be had
	if tx.Next().Kind != Done || tx.Result().Outcome != Failed {
		t.Fatalf("got %v", tx.Result())
	}
}

func TestCancel(t *testing.T) {
	for at, want := range map[Kind]Outcome{AddPartitions: Aborted, Produce: Aborted, CommitOffsets: Aborted, EndCommit: Unknown} {
		tx := &Transaction{}
		tx.Begin(&both)
		for tx.Next().Kind != at {
			tx.Answer(OK, nil)
		}
		tx.Cancel(errors.New("stop"))
		if tx.Next().Kind != Done || tx.Result().Outcome != want {
			t.Fatalf("cancelled at %d: %v, want %v", at, tx.Result(), want)
		}
	}
}

func TestBackoffGrowsToItsBoundAndEndsWithSuccess(t *testing.T) {
	tx := &Transaction{}
	tx.Begin(&both)
	last := time.Duration(0)
	for range 20 {
		tx.Answer(Retry, errors.New("busy"))
		if d := tx.Next().Delay; d < last || d > lastBackoff {
			t.Fatalf("delay %v after %v", d, last)
		}
		last = tx.Next().Delay
	}
	tx.Answer(OK, nil)
	if last != lastBackoff || tx.Next().Delay != 0 {
		t.Fatalf("delay ended at %v, then %v", last, tx.Next().Delay)
	}
}

// TestAgainstABroker plays random answers against a model of the broker's side: what the machine says must be true.
func TestAgainstABroker(t *testing.T) {
	rnd := seed.Rand(t)
	for i := range 20000 {
		tx := &Transaction{}
		committed := map[int]bool{} // what the broker has committed, by number
		open, began := -1, -1
		for n := range 5 {
			tx.Begin(&both)
			began = n
			if err := play(tx, rnd, &open, began, committed); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

func play(tx *Transaction, rnd *rand.Rand, open *int, n int, committed map[int]bool) error {
	for tx.Next().Kind != Done {
		effect, verdict := true, OK
		switch rnd.IntN(8) {
		case 0:
			effect, verdict = false, Retry
		case 1:
			verdict = NoAnswer
		case 2:
			effect, verdict = false, NoAnswer
		case 3:
			if rnd.IntN(3) == 0 && tx.Next().Kind != InitProducer {
				effect, verdict = false, Lost
				*open = -1 // the broker has aborted it
			}
		}
		if verdict == OK && tx.Next().Kind == EndCommit && *open != n && !committed[n] {
			return fmt.Errorf("commit %d ended, but the broker has %d open", n, *open)
		}
		if effect {
			switch tx.Next().Kind {
			case InitProducer:
				*open = -1
			case AddPartitions, AddOffsets:
				*open = n
			case EndCommit:
				if *open == n {
					committed[n], *open = true, -1
				}
			}
		}
		tx.Answer(verdict, errors.New("injected"))
	}
	switch r := tx.Result(); {
	case r.Outcome == Committed && !committed[n]:
		return fmt.Errorf("commit %d is said to be committed and is not", n)
	case r.Outcome == Aborted && committed[n]:
		return fmt.Errorf("commit %d is said to be aborted and is committed", n)
	case *open != -1:
		return fmt.Errorf("transaction %d is left open after %v", *open, r.Outcome)
	}
	return nil
}
