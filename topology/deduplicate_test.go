package topology_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

var seenIDs = store.NewKeyValue("seen", serde.String, serde.Int64)

func deduplicated(span time.Duration) *topology.Builder {
	b := topology.NewBuilder()
	topology.To(topology.Deduplicate(topology.From(b, in), seenIDs, func(k, v string) string { return v }, span), out)
	return b
}

func TestDeduplicate(t *testing.T) {
	t.Parallel()
	r := start(deduplicated(10*time.Millisecond), processor.Options{}, nil)
	r.feed("in a x 100", "in a x 105", "in b x 109", "in a x 91", "in a y 91", "in a - 95", "in - x 109")
	equal(t, read(r, out), "a=x@100", "a=y@91", "a=null@95")
	r.feed("in a x 110", "in a x 119", "in a x 120", "in a x 110", "in a x 105", "in a '' 1", "in b '' 2")
	// The last x is 15 before what went through last: what was there then is no longer known.
	equal(t, read(r, out), "a=x@110", "a=x@120", "a=x@110", "a=x@105", "a=@1")
	if got := get(r, seenIDs, "x"); got != "120@120" {
		t.Errorf("x was seen at %s", got)
	}
}

// The store holds the ids of two spans and a little more, however many there are, and forgets none that it needs.
func TestDeduplicateForgets(t *testing.T) {
	t.Parallel()
	const span, records = 1000, 20_000
	r := start(deduplicated(span*time.Millisecond), processor.Options{}, nil)
	through := 0
	for i := range records {
		r.send("in", text("k", strconv.Itoa(i), int64(i)), text("k", strconv.Itoa(max(0, i-span+1)), int64(i)))
		if i%100 == 0 {
			must(0, r.run())
			through += len(read(r, out))
		}
	}
	must(0, r.run())
	if through += len(read(r, out)); through != records {
		t.Errorf("%d records went through, not %d", through, records)
	}
	held := 0
	for _, stores := range r.stores {
		must(0, stores["seen"].Scan(store.Range{}, func(store.Pair) (bool, error) { held++; return true, nil }))
	}
	if held > 3*span+1000 {
		t.Errorf("%d ids are held", held)
	}
}

func ExampleDeduplicate() {
	payments := topology.NewTopic("payments", serde.String, serde.Int64)
	paid := topology.NewTopic("paid", serde.String, serde.Int64)
	seen := store.NewKeyValue("payments-seen", serde.String, serde.Int64)

	b := topology.NewBuilder()
	once := topology.Deduplicate(topology.From(b, payments), seen, func(id string, _ int64) string { return id }, time.Hour)
	topology.To(once, paid)

	r := start(b, processor.Options{}, nil)
	for _, minute := range []int64{0, 1, 59, 61} {
		r.send("payments", rec{key: []byte("invoice-7"), value: must(serde.Int64.Append(nil, 100)), ts: minute * 60_000})
	}
	must(0, r.run())
	for _, line := range read(r, paid) {
		fmt.Println(line)
	}
	// Output:
	// invoice-7=100@0
	// invoice-7=100@3660000
}
