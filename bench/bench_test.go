package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// TestMain lets the test binary be the child process that the benchmark starts.
func TestMain(m *testing.M) {
	if job, ok := os.LookupEnv(childVariable); ok {
		os.Exit(child(job))
	}
	brokertest.Main(m)
}

// Every contender makes the right table of every workload, on whatever broker the tests have.
func TestEveryContenderHasAFigure(t *testing.T) {
	o := options{
		brokers: brokertest.Brokers(t), records: 3000, lines: 500, keys: []int{50}, runs: 1, interval: 100 * time.Millisecond,
		out: filepath.Join(t.TempDir(), "figures.json"),
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(contenders); len(r.Rows) != want {
		t.Errorf("%d rows, want %d", len(r.Rows), want)
	}
	for _, x := range r.Rows {
		if len(x.Runs) != 1 || x.Rate.Median <= 0 || x.CPU <= 0 {
			t.Errorf("%s, %s: %+v", x.Workload, x.Contender, x)
		}
	}
}

// What is loaded and what is expected come from the same draws.
func TestExpectedTable(t *testing.T) {
	t.Parallel()
	for _, w := range workloads(options{records: 1000, lines: 200, keys: []int{70}}) {
		seen := make([]int64, w.Distinct)
		err := w.each(func(key, value []byte) error {
			words := [][]byte{key}
			if w.Kind == wordCount {
				words = bytes.Fields(value)
			}
			for _, word := range words {
				n, err := number(word)
				if err != nil {
					return err
				}
				seen[n]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range w.expected() {
			if seen[n] != want {
				t.Errorf("%s: %s is there %d times, expected %d times", w.Name, word(n), seen[n], want)
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	w := workload{Name: "work", Records: 1000}
	r := newReport(options{})
	for _, seconds := range []float64{4, 1, 2} {
		r.add(w, contender{name: plainName}, figure{Seconds: seconds, CPUSeconds: 0.001}, nil)
	}
	r.add(w, contender{name: "half"}, figure{Seconds: 4}, nil)
	r.add(w, contender{name: "wrong"}, figure{}, os.ErrInvalid)
	var out strings.Builder
	r.print(&out, w)
	if got := r.Rows[0].Rate; got.Median != 500 || got.Min != 250 || got.Max != 1000 || r.Rows[0].CPU != 1 {
		t.Errorf("plain: %+v", r.Rows[0])
	}
	if got := r.Rows[1].RatioToPlain; got != 0.5 {
		t.Errorf("ratio %v", got)
	}
	if r.failures() != 1 || !strings.Contains(out.String(), "no figure") {
		t.Errorf("failures %d in\n%s", r.failures(), out.String())
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
