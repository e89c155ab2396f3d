package changelog_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// Whatever is staged and flushed when, a store holds the last record of each key.
func TestRestoreOfAnyLog(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for name, opener := range map[string]store.Opener{"memory": memory.Opener{}, "bolt": bolt.Opener{Options: bolt.Options{NoSync: true, TxBytes: 1 << 19}}} {
		for round := range 20 {
			records, keys := 1+rng.IntN(5000), 1+rng.IntN(3000)
			if round == 0 { // enough to be merged in between
				records, keys = 10*records+100_000, 30*keys
			}
			common, zeros := 1+rng.IntN(3), 1+rng.IntN(12)
			want := map[string]string{}
			backend, err := opener.Open(t.TempDir(), "counts")
			must(t, err)
			l := store.NewLayered("counts", backend)
			r := changelog.NewRestorer(l, int64(records), 0, opener.Durable())
			for !r.Done() {
				var batch []changelog.Record
				from := r.Position()
				for at := from; at < min(from+int64(1+rng.IntN(1000)), int64(records)); at++ {
					key := strings.Repeat("long common prefix ", rng.IntN(common)) + fmt.Sprint(rng.IntN(keys)) + strings.Repeat("\x00", rng.IntN(zeros))
					if rng.IntN(5) == 0 {
						batch = append(batch, tombstone(key, at))
						delete(want, key)
						continue
					}
					value := strings.Repeat("x", rng.IntN(40)) + fmt.Sprint(at)
					batch = append(batch, put(key, value, at))
					want[key] = value
				}
				add(t, r, from+int64(len(batch)), batch...)
				if rng.IntN(4) == 0 && (round > 0 || rng.IntN(100) == 0) {
					must(t, r.Flush())
				}
			}
			if rng.IntN(2) == 0 {
				must(t, r.Flush())
			} else {
				settle(t, r)
			}
			var all []string
			for _, key := range slices.Sorted(maps.Keys(want)) {
				all = append(all, key+"="+want[key])
			}
			if got := contents(t, l); !slices.Equal(got, all) {
				t.Fatalf("%s, %d records, %d keys: got %d rows, want %d", name, records, keys, len(got), len(all))
			}
			wantOffset(t, l, int64(records))
			must(t, l.Close())
		}
	}
}

// Few keys and many records take the memory of few keys.
func TestStagedRecordsOfFewKeys(t *testing.T) {
	t.Parallel()
	l := newStore()
	r := changelog.NewRestorer(l, changelog.Forever, 0, true)
	value := strings.Repeat("x", 1000)
	for at := range int64(200_000) {
		add(t, r, at+1, put(fmt.Sprint(at%10), value, at))
	}
	if n := r.StagedBytes(); n > 150<<20 {
		t.Errorf("%d MiB are staged of ten keys", n>>20)
	}
	settle(t, r)
	if got := len(contents(t, l)); got != 10 {
		t.Errorf("%d keys", got)
	}
}

// A key that no backend takes is an error of its record, before anything of its batch is staged.
func TestKeyTooLargeNamesTheOffset(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		l := newStore()
		r := changelog.NewRestorer(l, 10, 0, durable)
		err := r.Add([]changelog.Record{put("a", "1", 0), put(strings.Repeat("k", store.MaxKeySize+1), "v", 7)}, 8)
		if !errors.Is(err, store.ErrKeyTooLarge) || !strings.Contains(err.Error(), "offset 7") {
			t.Fatalf("durable %v: %v", durable, err)
		}
		if r.Position() != 0 || r.StagedBytes() != 0 {
			t.Fatalf("durable %v: at %d with %d bytes", durable, r.Position(), r.StagedBytes())
		}
	}
}

// Records that are empty as a whole, key and value, are still in an order.
func TestEmptyRecordsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 200 {
		l := newStore()
		r := changelog.NewRestorer(l, changelog.Forever, 0, true)
		var records []changelog.Record
		for range 1 + rng.IntN(200) {
			at := int64(len(records))
			records = append(records, put(fmt.Sprint(rng.IntN(1000)), "", at), put("", "", at+1), tombstone("", at+2))
		}
		at := int64(len(records))
		records = append(records, put("", "", at))
		add(t, r, at+1, records...)
		settle(t, r)
		if _, ts, ok, err := l.Get(nil, []byte{}); !ok || err != nil || ts != records[at].Timestamp {
			t.Fatalf("%d records: the empty key is there: %v, of %d, %v: want the last record, of %d", len(records), ok, ts, err, records[at].Timestamp)
		}
	}
}
