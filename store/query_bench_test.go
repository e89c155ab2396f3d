package store_test

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

type onePartition struct{ *store.Reader }

func (p onePartition) Queried(store.Declaration) (store.Queried, error) {
	return store.Queried{Partitions: []store.QueriedPartition{p}, Owner: func([]byte) int32 { return 0 }, ByKey: true}, nil
}
func (onePartition) Number() int32         { return 0 }
func (onePartition) Ready() (int64, error) { return 0, nil }
func (p onePartition) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	for !p.Catalog(1024) {
	}
	dst, _, _, err := p.Reader.Scan(dst, r, limit)
	return dst, err
}

// A get and a range of ten rows, over 100,000 rows of which the backend has all.
func BenchmarkQuery(b *testing.B) {
	counts := store.NewKeyValue("s", serde.String, serde.Int64)
	l := store.LayersOf(counts, memory.New())
	for i := range 100_000 {
		if _, err := l.Put(fmt.Appendf(nil, "k%06d", i), make([]byte, 8), 1, nil); err != nil {
			b.Fatal(err)
		}
	}
	l.Prepare()
	l.Committed(1)
	batch, _ := l.BeginFlush()
	l.EndFlush(l.Backend().Apply(batch))
	q := counts.Query(onePartition{l.Reader()})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, ok, err := q.Get(fmt.Sprintf("k%06d", i%100_000)); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("range of 10", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			n := 0
			err := q.Range(fmt.Sprintf("k%06d", i%99_000), "z", func(string, int64) bool { n++; return n < 10 })
			if err != nil || n != 10 {
				b.Fatal(n, err)
			}
		}
	})
}
