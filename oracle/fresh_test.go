//go:build oracle

package oracle_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
)

var (
	update = flag.Bool("update", false, "make the answers in testdata anew")
	only   = flag.String("kind", "", "only kinds whose names begin with this")
	count  = flag.Int("scenarios", 2000, "number of fresh scenarios, at the least")
	each   = flag.Int("each", 4, "number of scenarios of a kind in testdata")
	shown  = flag.Int("shown", 5, "number of failing scenarios that are shrunk and shown, of each kind one at the most")
)

func start(t *testing.T) *oracle.KafkaStreams {
	t.Helper()
	k, err := oracle.StartKafkaStreams("java")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// kinds returns the kinds that were asked for.
func kinds() (names []string) {
	for _, name := range scenario.Kinds() {
		if strings.HasPrefix(name, *only) {
			names = append(names, name)
		}
	}
	return names
}

// asked sends scenarios and hands each with its answer to fn, in order.
func asked(t *testing.T, k *oracle.KafkaStreams, list []scenario.Scenario, fn func(scenario.Scenario, scenario.Answer)) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		for _, s := range list {
			if err := k.Ask(s); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for _, s := range list {
		a, err := k.Answer()
		if err != nil {
			t.Fatal(err)
		}
		fn(s, a)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// TestRecordedAnswers wants testdata to be what Kafka Streams answers to the scenarios that are made today. With -update it makes
// it so.
func TestRecordedAnswers(t *testing.T) {
	var list []scenario.Scenario
	for _, kind := range kinds() {
		for seed := range uint64(*each) {
			list = append(list, oracle.Imitate(scenario.Generate(kind, seed)))
		}
	}
	for _, s := range scenario.Reports() {
		list = append(list, oracle.Imitate(s))
	}
	files := map[string][]byte{}
	asked(t, start(t), list, func(s scenario.Scenario, a scenario.Answer) {
		line, err := json.Marshal(golden{s, a})
		if err != nil {
			t.Fatal(err)
		}
		family := scenario.Family(s.ID)
		files[family] = append(append(files[family], line...), '\n')
	})
	for family, lines := range files {
		path := filepath.Join("testdata", family+".jsonl")
		if *update {
			if err := os.WriteFile(path, lines, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(recorded, lines) {
			t.Errorf("%s is not what Kafka Streams answers: run with -update and read the diff", path)
		}
	}
}

// fresh makes at least n scenarios, as many of each kind.
func fresh(seed uint64, n int) (list []scenario.Scenario) {
	names := kinds()
	for i := 0; i < n || i%len(names) != 0; i++ {
		list = append(list, oracle.Imitate(scenario.Generate(names[i%len(names)], seed+uint64(i/len(names)))))
	}
	return list
}

// TestFresh compares on random scenarios.
func TestFresh(t *testing.T) {
	list, names := fresh(seed.Of(t), *count), kinds()
	k := start(t)
	failing := map[string]scenario.Scenario{}
	bad := 0
	asked(t, k, list, func(s scenario.Scenario, want scenario.Answer) {
		if differs(s, want) == "" {
			return
		}
		bad++
		kind, _, _ := strings.Cut(s.ID, "/")
		if before, ok := failing[kind]; !ok || len(s.In) < len(before.In) {
			failing[kind] = s
		}
	})
	t.Logf("%d scenarios, %d kinds", len(list), len(names))
	if bad == 0 {
		return
	}
	t.Errorf("%d scenarios differ", bad)
	for _, kind := range names {
		if s, ok := failing[kind]; ok && *shown > 0 {
			*shown--
			explain(t, k, s)
		}
	}
}

// differs runs a scenario on Millrace and compares.
func differs(s scenario.Scenario, want scenario.Answer) string {
	got, err := oracle.Millrace(s, nil)
	if err != nil {
		return err.Error()
	}
	return oracle.Compare(want, got)
}

// explain shrinks a failing scenario and shows it with both outcomes.
func explain(t *testing.T, k *oracle.KafkaStreams, s scenario.Scenario) {
	t.Helper()
	compare := func(s scenario.Scenario) string {
		s = oracle.Imitate(s)
		return differs(s, ask(t, k, s))
	}
	small := scenario.Shrink(s, func(s scenario.Scenario) bool { return compare(s) != "" })
	t.Errorf("%v%s", small, compare(small))
}

// TestDifferencesAreReal wants of each difference that Kafka Streams, when it does not imitate it, gives something else: an
// entry that has become equal must not stay.
func TestDifferencesAreReal(t *testing.T) {
	k := start(t)
	for _, d := range oracle.Differences() {
		if !isReal(t, k, d) {
			t.Errorf("%s: makes no difference in any scenario", d.Name)
		}
	}
}

func isReal(t *testing.T, k *oracle.KafkaStreams, d oracle.Difference) bool {
	for seed := range uint64(40) {
		for _, kind := range scenario.Kinds() {
			s := oracle.Imitate(scenario.Generate(kind, seed))
			i := slices.Index(s.Diff, d.Name)
			if i < 0 {
				continue
			}
			if d.Without != nil {
				if len(s.In) < len(scenario.Generate(kind, seed).In) {
					return true
				}
				continue
			}
			with := ask(t, k, s)
			s.Diff = slices.Delete(s.Diff, i, i+1)
			if oracle.Compare(with, ask(t, k, s)) != "" {
				return true
			}
		}
	}
	return false
}

func ask(t *testing.T, k *oracle.KafkaStreams, s scenario.Scenario) scenario.Answer {
	t.Helper()
	a, err := k.AskOne(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
