package store_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// benchKeys returns n keys in random order.
func benchKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		keys[i] = fmt.Appendf(nil, "key-%08d", k)
	}
	return keys
}

var benchValue = []byte("12345678")

// One commit interval after the other, 20,000 writes each, until the committed
// layer holds every key and is flushed.
func BenchmarkWriteSetPut(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			l := store.NewLayered("s", memory.New())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.Mark()
				if _, err := l.Put(keys[i%n], benchValue, 1, nil); err != nil {
					b.Fatal(err)
				}
				if i%20_000 == 19_999 {
					l.Prepare()
					l.Committed(int64(i))
				}
			}
		})
	}
}

func BenchmarkViewCount(b *testing.B) {
	v, src := view(b, serde.String, serde.Int64)
	keys := benchKeys(100_000)
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = string(k)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n, _, err := v.Get(names[i%len(names)])
		must(b, err)
		must(b, v.Put(names[i%len(names)], n+1))
		if i%20_000 == 19_999 {
			src.layers.Prepare()
			src.layers.Committed(int64(i))
		}
	}
}

// benchStore has every key in the backend, a tenth of them again in the
// committed layer, and a tenth of those in the uncommitted one.
func benchStore(b *testing.B, backend store.Backend, keys [][]byte) *store.Layered {
	b.Helper()
	l := store.NewLayered("s", backend)
	b.Cleanup(func() { must(b, l.Close()) })
	for i, part := range []int{1, 10, 100} {
		for _, k := range keys[:len(keys)/part] {
			if _, err := l.Put(k, benchValue, 1, nil); err != nil {
				b.Fatal(err)
			}
		}
		if i < 2 {
			l.Prepare()
			l.Committed(int64(i))
		}
		if i == 0 {
			flush(b, l)
		}
	}
	return l
}

func backends(b *testing.B, run func(b *testing.B, open func() store.Backend)) {
	b.Run("memory", func(b *testing.B) {
		run(b, func() store.Backend { return memory.New() })
	})
	b.Run("bolt", func(b *testing.B) {
		run(b, func() store.Backend {
			backend, err := bolt.Opener{}.Open(b.TempDir(), "s")
			must(b, err)
			return backend
		})
	})
}

func BenchmarkLayeredGet(b *testing.B) {
	backends(b, func(b *testing.B, open func() store.Backend) {
		keys := benchKeys(100_000)
		l := benchStore(b, open(), keys)
		var buf []byte
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			var err error
			if buf, _, _, err = l.Get(buf[:0], keys[i%len(keys)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLayeredGetOfMany reads keys of a large committed layer in no order, told ahead or not.
func BenchmarkLayeredGetOfMany(b *testing.B) {
	keys := benchKeys(1_000_000)
	backend, err := memory.Opener{}.Open("", "s")
	must(b, err)
	l := store.NewLayered("s", backend)
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(keys)) {
		_, err := l.Put(keys[i], []byte("12345678"), 1, nil)
		must(b, err)
	}
	l.Prepare()
	l.Committed(1)
	for name, ahead := range map[string]int{"cold": 0, "warm": 16} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			for i := 0; b.Loop(); i++ {
				at := i % len(keys)
				if ahead > 0 && at%ahead == 0 {
					l.Warm(keys[at:min(at+ahead, len(keys))])
				}
				var err error
				if buf, _, _, err = l.Get(buf[:0], keys[at]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Per pair.
func BenchmarkLayeredScan(b *testing.B) {
	backends(b, func(b *testing.B, open func() store.Backend) {
		l := benchStore(b, open(), benchKeys(100_000))
		b.ReportAllocs()
		for b.Loop() {
			must(b, l.Scan(store.Range{}, func(store.Pair) (bool, error) { return true, nil }))
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/pair")
	})
}

// A window fetch: few pairs each.
func BenchmarkLayeredShortScan(b *testing.B) {
	backends(b, func(b *testing.B, open func() store.Backend) {
		keys := benchKeys(100_000)
		l := benchStore(b, open(), keys)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pairs := 0
			must(b, l.Scan(store.Range{From: keys[i%len(keys)]}, func(store.Pair) (bool, error) {
				pairs++
				return pairs < 3, nil
			}))
		}
	})
}

// Flushes of random keys out of a million into memory.
func BenchmarkMemoryFlush(b *testing.B) {
	const n, size = 1_000_000, 50_000
	keys := benchKeys(n)
	backend := memory.New()
	must(b, backend.Apply(benchBatch(keys)))
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		from := i * size % n
		batch := benchBatch(keys[from : from+size])
		b.StartTimer()
		must(b, backend.Apply(batch))
	}
	b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}

// Synced flushes of random keys out of a million, after a bulk load.
func BenchmarkBoltFlush(b *testing.B) {
	for _, size := range []int{1_000, 50_000, 200_000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			const n = 1_000_000
			keys := benchKeys(n)
			backend, err := bolt.Opener{}.Open(b.TempDir(), "s")
			must(b, err)
			defer func() { must(b, backend.Close()) }()
			must(b, backend.Apply(benchBatch(keys)))
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				from := i * size % n
				batch := benchBatch(keys[from : from+size])
				b.StartTimer()
				must(b, backend.Apply(batch))
			}
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func benchBatch(keys [][]byte) store.Batch {
	w := store.NewWriteSet()
	for _, k := range keys {
		w.Put(k, benchValue, 1, nil)
	}
	return store.Batch{Entries: w.Entries(), Offset: 1}
}

// Open after a stop or a crash, of a million keys.
func BenchmarkBoltOpen(b *testing.B) {
	dir := b.TempDir()
	backend, err := bolt.Opener{}.Open(dir, "s")
	must(b, err)
	must(b, backend.Apply(benchBatch(benchKeys(1_000_000))))
	must(b, backend.Close())
	for b.Loop() {
		backend, err := bolt.Opener{}.Open(dir, "s")
		must(b, err)
		must(b, backend.Close())
	}
}

// Small commits to a file of 200 MB whose entries were all deleted, beside those to a
// fresh file.
func BenchmarkBoltSmallCommit(b *testing.B) {
	for _, held := range []int{0, 1_600_000} {
		b.Run(fmt.Sprintf("free-pages-of=%d", held), func(b *testing.B) {
			backend, err := bolt.Opener{}.Open(b.TempDir(), "s")
			must(b, err)
			defer func() { must(b, backend.Close()) }()
			w := store.NewWriteSet()
			for i := range held {
				w.Put(fmt.Appendf(nil, "old-%08d", i), make([]byte, 100), 1, nil)
			}
			must(b, backend.Apply(store.Batch{Entries: w.Sorted(), Offset: 1}))
			for i := range held {
				w.Delete(fmt.Appendf(nil, "old-%08d", i), 1, nil)
			}
			must(b, backend.Apply(store.Batch{Entries: w.Sorted(), Offset: 2}))
			keys := benchKeys(10_000)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				batch := benchBatch(keys[i%100*100 : i%100*100+100])
				b.StartTimer()
				must(b, backend.Apply(batch))
			}
		})
	}
}

// One flush of 200,000 random keys out of three million: how much memory it takes with
// transactions of bounded size, and without.
func BenchmarkBoltFlushMemory(b *testing.B) {
	const n, batch = 3_000_000, 200_000
	keys := benchKeys(n)
	for name, bytes := range map[string]int64{"default": 0, "unbounded": 1 << 40} {
		b.Run("tx="+name, func(b *testing.B) {
			backend, err := bolt.Opener{Options: bolt.Options{TxBytes: bytes}}.Open(b.TempDir(), "s")
			must(b, err)
			defer func() { must(b, backend.Close()) }()
			for from := 0; from < n; from += n / 10 {
				must(b, backend.Apply(benchBatch(keys[from:from+n/10])))
			}
			most := uint64(0)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				changed := benchBatch(keys[i*batch%(n-batch):][:batch])
				runtime.GC()
				before, peak := heap(), watchHeap()
				b.StartTimer()
				must(b, backend.Apply(changed))
				most = max(most, peak()-before)
			}
			b.ReportMetric(float64(most)/(1<<20), "peak-MB")
			b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watchHeap looks at the heap until the returned function is called, which tells the
// most that it has seen.
func watchHeap() (stop func() uint64) {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		top := heap()
		for {
			select {
			case <-done:
				most <- top
				return
			case <-time.After(5 * time.Millisecond):
				top = max(top, heap())
			}
		}
	}()
	return func() uint64 { close(done); return <-most }
}
