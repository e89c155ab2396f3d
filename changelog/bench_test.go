package changelog_test

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// Restore of 1,000,000 records of 500,000 keys, flushes included.
func BenchmarkRestore(b *testing.B) {
	const n, keys = 1_000_000, 500_000
	records := make([]changelog.Record, n)
	for i := range records {
		records[i] = put(fmt.Sprintf("key-%08d", i*7919%keys), "12345678", int64(i))
	}
	for _, opener := range []store.Opener{memory.Opener{}, bolt.Opener{}} {
		b.Run(fmt.Sprintf("%T", opener), func(b *testing.B) {
			for b.Loop() {
				restoreAll(b, opener, records)
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func restoreAll(b *testing.B, opener store.Opener, records []changelog.Record) {
	backend, err := opener.Open(b.TempDir(), "s")
	if err != nil {
		b.Fatal(err)
	}
	r := changelog.NewRestorer(store.NewLayered("s", backend), int64(len(records)), 0)
	for !r.Done() {
		next := min(r.Position()+10_000, r.End())
		if err := r.Add(records[r.Position():next], next); err != nil {
			b.Fatal(err)
		}
		if batch, ok := r.BeginFlush(); ok {
			r.EndFlush(backend.Apply(batch))
		}
	}
	if err := backend.Close(); err != nil {
		b.Fatal(err)
	}
}
