package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// A count per key in tumbling windows: 1,000 keys, 10,000 records a window and a
// commit, windows expiring all the time.
func BenchmarkWindowCount(b *testing.B) {
	d := store.NewWindow("s", serde.String, serde.Int64, store.WindowOptions{Size: time.Second, Retention: 5 * time.Second})
	src := task(d)
	v, err := d.View(src)
	must(b, err)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%06d", i)
	}
	n := int64(0)
	for b.Loop() {
		k, start := keys[n%1000], n/10_000*1000
		count, _, err := v.Fetch(k, start)
		if err == nil {
			_, err = v.Put(k, count+1, start)
		}
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%10_000 == 0 {
			_, err := src.layers.Expire(0)
			must(b, err)
			src.layers.Prepare()
			src.layers.Committed(n)
			flush(b, src.layers)
		}
	}
}

// Joins of a stream with a versioned table: 1,000 keys, ten versions each.
func BenchmarkVersionedAsOf(b *testing.B) {
	d := store.NewVersioned("s", serde.Int64, serde.Int64, time.Hour)
	src := task(d)
	v, err := d.View(src)
	must(b, err)
	for i := range int64(10_000) {
		_, _, err := v.Put(i%1000, i, i)
		must(b, err)
	}
	src.layers.Prepare()
	src.layers.Committed(1)
	flush(b, src.layers)
	n := int64(0)
	for b.Loop() {
		if _, ok, err := v.GetAsOf(n%1000, n%5000+5000); !ok || err != nil {
			b.Fatal(ok, err)
		}
		n++
	}
}
