package changelog_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// The changelog of one partition of a count over a million keys in four partitions: half a
// million records, a quarter of a million keys, in batches as they are fetched.
func benchLog() (batches [][]changelog.Record, n int64) {
	const records, keys, batch = 500_000, 250_000, 10_000
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range records {
		if i%batch == 0 {
			batches = append(batches, nil)
		}
		last := &batches[len(batches)-1]
		*last = append(*last, changelog.Record{
			Key: fmt.Appendf(nil, "user-%d", rng.IntN(keys)), Value: binary.BigEndian.AppendUint64(nil, uint64(i)), Offset: int64(i), Timestamp: 1,
		})
	}
	return batches, records
}

func BenchmarkRestore(b *testing.B) {
	for name, opener := range map[string]store.Opener{"memory": memory.Opener{}, "bolt": bolt.Opener{}} {
		b.Run(name, func(b *testing.B) {
			batches, n := benchLog()
			b.ReportAllocs()
			for b.Loop() {
				backend, err := opener.Open(b.TempDir(), "s")
				must(b, err)
				l := store.NewLayered("s", backend)
				restore(b, l, batches, n, opener.Durable())
				must(b, l.Close())
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// stagedBytes is as many as a store may have of four that are restored at once.
const stagedBytes = 64 << 20

func restore(b *testing.B, l *store.Layered, batches [][]changelog.Record, end int64, durable bool) {
	b.Helper()
	r := changelog.NewRestorer(l, end, 0, durable)
	for _, records := range batches {
		must(b, r.Add(records, records[len(records)-1].Offset+1))
		if r.StagedBytes() > stagedBytes {
			must(b, r.Flush())
		}
	}
	must(b, r.Flush())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
