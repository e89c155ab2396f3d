package work

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// Input is a record of an input. Its slices are used again.
type Input struct {
	Key, Value []byte        // Key is nil for none
	After      time.Duration // the first record's time; only that of Windows is after it
}

// draw is what is random in a record: keys or words by number, and how late it is.
type draw struct {
	number int
	late   time.Duration
}

// draws returns the sequence of the input's keys or words; it is the same at each call.
func (w Workload) draws() func() draw {
	seed := fnv.New64a()
	seed.Write([]byte(w.Topic))
	rng := rand.New(rand.NewPCG(seed.Sum64(), 1))
	number := func() int { return rng.IntN(w.Distinct) }
	if w.Zipf > 0 {
		zipf := rand.NewZipf(rng, w.Zipf, 1, uint64(w.Distinct-1))
		number = func() int { return int(zipf.Uint64()) }
	}
	return func() (d draw) {
		d.number = number()
		if w.Kind == Windows {
			d.late = time.Duration(rng.Int64N(int64(Disorder/time.Millisecond))) * time.Millisecond
		}
		return d
	}
}

// Inputs calls fn for each record of the input, in order.
func (w Workload) Inputs(fn func(Input) error) error {
	next := w.draws()
	in := Input{Value: bytes.Repeat([]byte("v"), w.Value)}
	for i := range w.Records {
		switch w.Kind {
		case Words:
			in.Value = in.Value[:0]
			for range WordsPerLine {
				in.Value = append(appendWord(in.Value, next().number), ' ')
			}
		case Join: // the number of the record makes values differ
			in.Key = appendWord(in.Key[:0], next().number)
			appendWord(in.Value[:0], i)
		default:
			d := next()
			in.Key, in.After = appendWord(in.Key[:0], d.number), w.after(i, d)
		}
		if err := fn(in); err != nil {
			return err
		}
	}
	return nil
}

// after is the time of record i, counted from the first window's start.
func (w Workload) after(i int, d draw) time.Duration {
	if w.Kind != Windows {
		return 0
	}
	advance := time.Duration(i) * Span / time.Duration(w.Records)
	return advance.Truncate(time.Millisecond) + d.late
}

// Rows calls fn for each record of the topic of rows: one for each key.
func (w Workload) Rows(fn func(Input) error) error {
	var in Input
	for n := range w.Distinct {
		in.Key = appendWord(in.Key[:0], n)
		in.Value = appendRow(in.Value[:0], n)
		if err := fn(in); err != nil {
			return err
		}
	}
	return nil
}

func appendRow(to []byte, n int) []byte { return appendWord(append(to, "row-of-"...), n) }

// appendWord appends the key or word of a number: "w" and seven digits.
func appendWord(to []byte, n int) []byte { return fmt.Appendf(to, "w%07d", n) }

// Word is the key or word of a number.
func Word(n int) string { return string(appendWord(nil, n)) }

// wordBytes is the length of a word.
const wordBytes = 8

// Number is the inverse of Word.
func Number(word []byte) (int, error) {
	if len(word) == wordBytes && word[0] == 'w' {
		if n, err := strconv.Atoi(string(word[1:])); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is no word of the input", word)
}
