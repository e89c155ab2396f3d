package work

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// Table is what the output's last values must be. Its entries are keys, words, or keys in windows, by number; their values
// are counts, or for Join the number of the last record.
type Table struct {
	w       Workload
	base    time.Time // of the first window
	want    []int64
	got     []int64
	outputs int
}

// Expected returns the right table of an input that was loaded as of base.
func (w Workload) Expected(base time.Time) *Table {
	t := &Table{w: w, base: base.Truncate(Window), want: make([]int64, w.entries())}
	next := w.draws()
	records := w.Records
	if w.Kind == Words {
		records *= WordsPerLine
	}
	for i := range records {
		d := next()
		switch w.Kind {
		case Join:
			t.want[d.number] = int64(i) + 1
		case Windows:
			t.want[int(w.after(i, d)/Window)*w.Distinct+d.number]++
		default:
			t.want[d.number]++
		}
	}
	return t
}

// Counts returns a table of the given counts per key.
func Counts(want []int64) *Table {
	return &Table{w: Workload{Kind: Count, Distinct: len(want)}, want: want}
}

// entries is one more than the largest number of an entry.
func (w Workload) entries() int {
	if w.Kind == Windows {
		return int((Span+Disorder)/Window+1) * w.Distinct
	}
	return w.Distinct
}

// Clear forgets the outputs of a run.
func (t *Table) Clear() {
	t.got, t.outputs = make([]int64, len(t.want)), 0
}

// Add takes the next record of the output.
func (t *Table) Add(key, value []byte) error {
	entry, err := t.entry(key)
	if err != nil {
		return err
	}
	if entry < 0 || entry >= len(t.got) {
		return fmt.Errorf("the key %q is none of the input's", key)
	}
	t.outputs++
	t.got[entry], err = t.value(entry, value)
	return err
}

func (t *Table) entry(key []byte) (int, error) {
	if t.w.Kind != Windows {
		return Number(key)
	}
	if len(key) < 8 {
		return 0, fmt.Errorf("%q is no key in a window", key)
	}
	n, err := Number(key[:len(key)-8])
	start := time.UnixMilli(int64(binary.BigEndian.Uint64(key[len(key)-8:])))
	return int(start.Sub(t.base)/Window)*t.w.Distinct + n, err
}

func (t *Table) value(entry int, value []byte) (int64, error) {
	if t.w.Kind == Join {
		rest, ok := bytes.CutPrefix(value, append(appendRow(nil, entry), '|'))
		if !ok || len(rest) != t.w.Value || len(rest) < wordBytes {
			return 0, fmt.Errorf("%q is no joined value of %s", value, Word(entry))
		}
		n, err := Number(rest[:wordBytes])
		return int64(n) + 1, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%q is no count", value)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Check compares what was added with what must be.
func (t *Table) Check() error {
	if t.w.Kind == Join && t.outputs != t.w.Records {
		return fmt.Errorf("wrong output: %d records instead of %d", t.outputs, t.w.Records)
	}
	if slices.Equal(t.got, t.want) {
		return nil
	}
	wrong, first := 0, -1
	for n := range t.want {
		if t.got[n] != t.want[n] {
			if wrong++; first < 0 {
				first = n
			}
		}
	}
	return fmt.Errorf("wrong table: %d of %d entries, the first is %s: %d instead of %d",
		wrong, len(t.want), t.name(first), t.got[first], t.want[first])
}

func (t *Table) name(entry int) string {
	name := Word(entry % t.w.Distinct)
	if t.w.Kind == Windows {
		name += " in window " + Thousands(entry/t.w.Distinct)
	}
	return name
}
