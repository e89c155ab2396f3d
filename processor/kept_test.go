package processor

import (
	"encoding/base64"
	"math"
	"testing"
	"time"
)

// keeper is a task of two inputs and no nodes, that keeps numbers.
func keeper(starts ...Start) *Task {
	t := &Task{byPartition: map[TopicPartition]*input{}, spec: &Spec{}}
	t.inherit(starts)
	for _, s := range starts {
		in := &input{tp: s.TopicPartition, next: s.Offset, prepared: s.Offset}
		t.inputs = append(t.inputs, in)
		t.byPartition[s.TopicPartition] = in
	}
	return t
}

func in(topic, metadata string) Start {
	return Start{Position: Position{TopicPartition: TopicPartition{Topic: topic}, Metadata: metadata}}
}

// What nodes keep is that of the newest commit, whichever position it is in, and may fall.
func TestKeptNumbersAreThoseOfTheNewestCommit(t *testing.T) {
	task := keeper(in("a", ""), in("b", ""))
	high, low := task.Keep("high"), task.Keep("low")
	if high.Value() != Unknown {
		t.Fatalf("got %d", high.Value())
	}
	at := map[string]string{}
	commit := func(moved string) {
		t.Helper()
		if moved != "" {
			task.byPartition[TopicPartition{Topic: moved}].next++
		}
		var c Commit
		if err := task.Prepare(&c); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Positions {
			at[p.Topic] = p.Metadata
		}
	}
	high.Advance(7)
	high.Advance(5)
	low.Set(math.MaxInt64)
	commit("a")
	low.Set(3)
	commit("b")
	again := keeper(in("a", at["a"]), in("b", at["b"]))
	if h, l := again.Keep("high").Value(), again.Keep("low").Value(); h != 7 || l != 3 {
		t.Errorf("got %d and %d", h, l)
	}
	low.Set(9) // without a position that has moved
	commit("")
	again = keeper(in("a", at["a"]), in("b", at["b"]))
	if l := again.Keep("low").Value(); l != 9 {
		t.Errorf("got %d", l)
	}
	if n := len(at["a"]); n > 150 {
		t.Errorf("%d characters of metadata", n)
	}
	commit("")
	if before, c := at["a"], (Commit{}); task.Prepare(&c) != nil || len(c.Positions) != 0 || at["a"] != before {
		t.Errorf("a commit of nothing names %v", c.Positions)
	}
}

func TestKeptNumbersAreRolledBack(t *testing.T) {
	task := keeper()
	k := task.Keep("k")
	k.Set(5)
	task.mark()
	k.Advance(9)
	task.rollback()
	if k.Value() != 5 {
		t.Errorf("got %d", k.Value())
	}
}

// Kafka Streams' metadata: a byte 2, the time, and the processors' numbers.
func TestKeptNumbersOfKafkaStreams(t *testing.T) {
	written := []byte{2, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 3, 'a', 'g', 'g', 0, 0, 0, 0, 0, 0, 0, 42}
	metadata := base64.StdEncoding.EncodeToString(written)
	older := base64.StdEncoding.EncodeToString(append(written[:len(written)-1:len(written)-1], 41))
	for _, starts := range [][]Start{{in("a", metadata), in("b", older)}, {in("a", older), in("b", metadata)}} {
		if got := keeper(starts...).Keep("agg").Value(); got != 42 {
			t.Errorf("got %d", got)
		}
	}
	if got := DecodePartitionTime(metadata); got != 9 {
		t.Errorf("time %d", got)
	}
	for n := range len(written) {
		cut := base64.StdEncoding.EncodeToString(written[:n])
		if got := keeper(in("a", cut)).Keep("agg").Value(); got != Unknown {
			t.Errorf("cut at %d: got %d", n, got)
		}
	}
}

// A record too far ahead of the wall clock is dropped at once, though records of other inputs are older, and moves no time.
func TestMaxAhead(t *testing.T) {
	var got []int64
	task := keeper(in("a", ""), in("b", ""))
	task.streamTime, task.opt.Consumed = Unknown, func(TopicPartition, int) {}
	for _, in := range task.inputs {
		in.time = Unknown
		in.source = func(r *Raw) error {
			got = append(got, r.Timestamp)
			return nil
		}
	}
	task.inputs[0].clock = clock{maxAhead: time.Hour.Milliseconds(), extract: func(r *Raw, partitionTime int64) int64 {
		if r.Timestamp < 0 {
			return partitionTime
		}
		return r.Timestamp
	}}
	var dropped []Action
	task.opt.Dropped = func(_ *RecordError, a Action) { dropped = append(dropped, a) }
	task.now = 1000
	hour := time.Hour.Milliseconds()
	task.Enqueue(TopicPartition{Topic: "b"}, []Raw{{Timestamp: 20}}, 1, 1, false)
	task.Enqueue(TopicPartition{Topic: "a"}, []Raw{{Timestamp: 7}, {Timestamp: hour + 1001}, {Timestamp: -1}, {Timestamp: hour + 1000}}, 4, 1, false)
	if n, err := task.Run(1000, 10); n != 5 || err != nil {
		t.Fatalf("ran %d, %v", n, err)
	}
	if len(got) != 4 || got[0] != 7 || got[1] != 7 || got[2] != 20 || got[3] != hour+1000 || task.StreamTime() != hour+1000 {
		t.Errorf("processed %v, stream time %d", got, task.StreamTime())
	}
	if len(dropped) != 1 || dropped[0] != Skip || task.Counters.Skipped != 1 {
		t.Errorf("dropped %v, %+v", dropped, task.Counters)
	}
}

func TestActionsOfSpecialKinds(t *testing.T) {
	if a := (ErrorPolicy{}).action(KindAhead); a != Skip {
		t.Errorf("ahead: %v", a)
	}
	if a := DeadLetter("d").action(KindAhead); a != SendDeadLetter {
		t.Errorf("ahead with dead letters: %v", a)
	}
	if a := SkipBadRecords().action(KindFatal); a != Fail {
		t.Errorf("fatal: %v", a)
	}
}

// A node may send on what it kept as if its record were in work; errors are still the record's.
func TestOrigins(t *testing.T) {
	task := keeper(in("a", ""))
	if got := task.Origin(); got != (Origin{Partition: -1, Offset: -1}) {
		t.Errorf("got %+v", got)
	}
	task.record, task.inputOf, task.recordTime = &Raw{Offset: 3}, task.inputs[0], 5
	kept := Origin{Topic: "kept", Partition: 2, Offset: 9}
	err := task.From(kept, 1, func() error {
		if task.Origin() != kept || task.RecordTime() != 1 || task.describe(ErrNullKey).Topic != "a" {
			t.Errorf("got %+v at %d", task.Origin(), task.RecordTime())
		}
		return ErrNullKey
	})
	if err != ErrNullKey || task.Origin() != (Origin{Topic: "a", Offset: 3}) || task.RecordTime() != 5 {
		t.Errorf("%v, got %+v at %d", err, task.Origin(), task.RecordTime())
	}
}

func TestNamesOfKeptNumbersAreShort(t *testing.T) {
	long := "a-store-with-a-name-of-quite-some-length@stream-time"
	if a, b := shortened(long), shortened("x"+long); len(a) != 32 || len(b) != 32 || a == b || a != shortened(long) {
		t.Errorf("%q and %q", a, b)
	}
	for _, name := range []string{"short@stream-time", "a-store-with-a-name-of-quite-some-length"} {
		if got := shortened(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}
