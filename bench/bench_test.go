package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

// TestMain lets the test binary be the child process that the benchmark starts.
func TestMain(m *testing.M) {
	contender.Child()
	brokertest.Main(m)
}

// Every contender in Go makes the right table of every kind of work, on whatever broker the tests have.
func TestEveryContenderHasAFigure(t *testing.T) {
	figures := filepath.Join(t.TempDir(), "figures.json")
	o, err := parse([]string{
		"-brokers", strings.Join(brokertest.Brokers(t), ","), "-scale", "0.001", "-runs", "1", "-json", figures,
		"-workload", "count-1k,count-1k-alo,words,words-zipf,windows,join", "-contender", "read,plain,async,millrace-memory,millrace-combining",
	})
	if err == nil {
		err = run(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Sections {
		for _, c := range o.contenders {
			if x := s.Row(c.Name); c.Can(s.Workload) && (x == nil || len(x.Runs) != 1 || x.Stats[report.Rate].Median <= 0 || x.Stats[report.CPU].Median <= 0) {
				t.Errorf("%s, %s: %+v", s.Workload.Name, c.Name, x)
			}
		}
	}
}

func TestPickRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-workload", "count-2k"}, {"-contender", "samza"}, {"-runs", "0"}, {"-scale", "0"}, {"more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v are taken", args)
		}
	}
}

// The calculation and the simulation are printed for any cluster, and refused for one that cannot be.
func TestModel(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := modelled([]string{"-processes", "4", "-partitions", "16", "-standbys", "1", "-rate", "1e6", "-brokers", "1", "-replicas", "1"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"peak memory", "transactions", "take-over by standbys", "one joins", "beyond the bound: traffic of a broker"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing of %q in\n%s", want, &out)
		}
	}
	for _, args := range [][]string{{"-processes", "0"}, {"-brokers", "1", "-replicas", "2"}, {"-rate", "NaN"}, {"more"}} {
		if err := modelled(args, &out); err == nil {
			t.Errorf("%v are taken", args)
		}
	}
}

func TestPickByPattern(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-workload", "latency-*,restart", "-contender", "kafka-streams*"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range o.workloads {
		got = append(got, w.Name)
	}
	for _, c := range o.contenders {
		got = append(got, c.Name)
	}
	if want := []string{"latency-1k", "latency-20k", "restart", "kafka-streams", "kafka-streams-nocache", "kafka-streams-tuned"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
