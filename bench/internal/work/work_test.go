package work

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

// The table that is expected is the one that a plain count over the input makes, and another one is refused.
func TestExpectedTable(t *testing.T) {
	t.Parallel()
	base := time.UnixMilli(1_700_000_000_000).Truncate(Window)
	for _, w := range All(0.001) {
		if w.Topic == "" {
			continue
		}
		table := w.Expected(base.Add(3 * time.Second))
		out := outputs(t, w, base)
		feed(t, table, out)
		if err := table.Check(); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		feed(t, table, out[:len(out)-1])
		if table.Check() == nil {
			t.Errorf("%s: a table without its last output is taken", w.Name)
		}
	}
}

type output struct{ key, value []byte }

func feed(t *testing.T, table *Table, out []output) {
	t.Helper()
	table.Clear()
	for _, o := range out {
		if err := table.Add(o.key, o.value); err != nil {
			t.Fatal(err)
		}
	}
}

// outputs does the work in the simplest way.
func outputs(t *testing.T, w Workload, base time.Time) (out []output) {
	t.Helper()
	counts := map[string]uint64{}
	count := func(key []byte) {
		counts[string(key)]++
		out = append(out, output{bytes.Clone(key), binary.BigEndian.AppendUint64(nil, counts[string(key)])})
	}
	rows := map[string]string{}
	if w.Table != "" {
		must(t, w.Rows(func(in Input) error { rows[string(in.Key)] = string(in.Value); return nil }))
	}
	must(t, w.Inputs(func(in Input) error {
		switch w.Kind {
		case Words:
			for word := range bytes.FieldsSeq(in.Value) {
				count(word)
			}
		case Windows:
			count(binary.BigEndian.AppendUint64(bytes.Clone(in.Key), uint64(base.Add(in.After).Truncate(Window).UnixMilli())))
		case Join:
			out = append(out, output{bytes.Clone(in.Key), []byte(rows[string(in.Key)] + "|" + string(in.Value))})
		default:
			count(in.Key)
		}
		return nil
	}))
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWindowsAreNeverLate(t *testing.T) {
	t.Parallel()
	if Disorder >= Grace {
		t.Error("records may come after their window is closed")
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
