package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/sim"
	"github.com/millrace-streams/millrace/processor"
)

var (
	out = processor.TopicPartition{Topic: "out"}
	in  = processor.TopicPartition{Topic: "in"}
)

func newCluster(t *testing.T) *sim.Cluster {
	t.Helper()
	c := sim.NewCluster()
	for _, topic := range []string{"in", "out"} {
		must(t, c.CreateTopic(topic, 1))
	}
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func raw(keys ...string) []processor.Raw {
	var records []processor.Raw
	for _, k := range keys {
		records = append(records, processor.Raw{Key: []byte(k), Value: []byte("v")})
	}
	return records
}

// shown is what a reader gets from an offset on: "a b|next".
func shown(t *testing.T, c *sim.Cluster, tp processor.TopicPartition, from int64, limit int) string {
	t.Helper()
	records, next, err := c.Read(tp, from, limit)
	must(t, err)
	var keys []string
	for _, r := range records {
		keys = append(keys, fmt.Sprintf("%s@%d", r.Key, r.Offset))
	}
	return fmt.Sprintf("%s|%d", strings.Join(keys, " "), next)
}

func wantShown(t *testing.T, c *sim.Cluster, from int64, want string) {
	t.Helper()
	if got := shown(t, c, out, from, 100); got != want {
		t.Fatalf("from %d: read %q, want %q", from, got, want)
	}
}

// begin starts a producer whose transaction has written keys to out.
func begin(t *testing.T, c *sim.Cluster, id string, keys ...string) sim.Producer {
	t.Helper()
	p, err := c.InitProducer(id)
	must(t, err)
	must(t, c.AddPartitions(id, p, []processor.TopicPartition{out}))
	_, err = c.Produce(id, p, out, 0, raw(keys...))
	must(t, err)
	return p
}

func TestReadersStopAtTheFirstUndecidedTransaction(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p1 := begin(t, c, "one", "a")
	p2 := begin(t, c, "two", "b")
	must(t, c.EndTransaction("two", p2, true))
	wantShown(t, c, 0, "|0")
	wantShown(t, c, 2, "|2") // beyond the last stable offset
	must(t, c.EndTransaction("one", p1, false))
	wantShown(t, c, 0, "b@1|4") // a is aborted, 2 and 3 are markers
	if got := shown(t, c, out, 0, 1); got != "b@1|2" {
		t.Fatal(got)
	}
	if _, _, err := c.Read(out, 5, 1); !errors.Is(err, sim.ErrOffsetOutOfRange) {
		t.Fatal(err)
	}
}

func TestStartingAProducerAbortsAndFences(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	old := begin(t, c, "id", "a")
	p, err := c.InitProducer("id")
	must(t, err)
	wantShown(t, c, 0, "|2")
	wantError(t, c.EndTransaction("id", old, true), sim.ErrFenced)
	_, err = c.Produce("id", old, out, 1, raw("b"))
	wantError(t, err, sim.ErrFenced)
	wantError(t, c.EndTransaction("id", p, true), sim.ErrInvalidTransaction)
}

func TestABatchSentAgainIsWrittenOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := begin(t, c, "id", "a", "b")
	base, err := c.Produce("id", p, out, 0, raw("a", "b"))
	must(t, err)
	if base != 0 || c.End(out) != 2 {
		t.Fatal(base, c.End(out))
	}
	_, err = c.Produce("id", p, out, 3, raw("c"))
	wantError(t, err, sim.ErrOutOfOrderSequence)
}

func TestLateMarkersHoldUpTheNextTransaction(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.LateMarkers = true
	p := begin(t, c, "id", "a")
	must(t, c.EndTransaction("id", p, true))
	wantShown(t, c, 0, "|0")
	wantError(t, c.AddPartitions("id", p, []processor.TopicPartition{out}), sim.ErrConcurrentTransactions)
	_, err := c.InitProducer("id")
	wantError(t, err, sim.ErrConcurrentTransactions)
	c.WriteMarkers()
	wantShown(t, c, 0, "a@0|2")
	must(t, c.EndTransaction("id", p, true)) // told again
	wantError(t, c.EndTransaction("id", p, false), sim.ErrInvalidTransaction)
	must(t, c.AddPartitions("id", p, []processor.TopicPartition{out}))
}

func TestATimedOutTransactionIsAborted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := begin(t, c, "id", "a")
	if !c.Expire("id") || c.Expire("id") {
		t.Fatal("expired not once")
	}
	wantShown(t, c, 0, "|2")
	wantError(t, c.EndTransaction("id", p, true), sim.ErrFenced)
}

func TestOffsetsAreRefusedFromStaleMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := c.Group("app", []sim.Task{{Inputs: []processor.TopicPartition{in}}})
	port := sim.NewPort(g, sim.PortConfig{ID: "worker"})
	for range 2 {
		port.Poll(0)
	}
	current := sim.Membership{Member: "worker#1", Generation: 1}
	at := []processor.Position{{TopicPartition: in, Offset: 7}}
	must(t, g.CommitOffsets(current, at))
	sim.NewPort(g, sim.PortConfig{ID: "other"})
	wantError(t, g.CommitOffsets(current, at), sim.ErrIllegalGeneration)
	port.Expel()
	wantError(t, g.CommitOffsets(current, at), sim.ErrUnknownMember)
	if p, ok := g.Committed(in); !ok || p.Offset != 7 {
		t.Fatal(p, ok)
	}
}

func TestCompactionKeepsTheLastRecordOfEachKey(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, err := c.Append(out, raw("a", "b", "a")...)
	must(t, err)
	p := begin(t, c, "id", "b")
	must(t, c.EndTransaction("id", p, true))
	begin(t, c, "open", "a")
	c.Compact(out)
	wantShown(t, c, 0, "a@2 b@3|5")
	c.DeleteRecords(out, 3)
	if c.Start(out) != 3 || c.End(out) != 6 || c.Stable(out) != 5 {
		t.Fatal(c.Start(out), c.End(out), c.Stable(out))
	}
	wantShown(t, c, 3, "b@3|5")
}
