package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/model"
	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// What the calculation says of bytes, beside stores that hold as much. These tests are alone in the process: they look at its heap.

const tested = 40_000 // keys

// of is one task that has so many keys, all of which are written between two flushes.
func of(state int, inMemory bool) model.Cluster {
	c := model.Default()
	c.Processes, c.Workers, c.Partitions, c.Brokers, c.Replicas = 1, 1, 1, 1, 1
	c.Keys, c.StateBytes, c.Memory = tested, float64(state), inMemory
	c.Rate, c.FlushInterval = tested, 250*time.Millisecond // 10,000 records to a flush
	return c
}

func put(w *store.WriteSet, keys []int, state int) {
	for _, k := range keys {
		w.Put(fmt.Appendf(nil, "%016d", k), make([]byte, state), 1, nil)
	}
}

func within(t *testing.T, what string, got, want, factor float64) {
	t.Helper()
	t.Logf("%s: calculated %s, measured %s", what, model.Number(got), model.Number(want))
	if !(got <= want*factor && want <= got*factor) {
		t.Errorf("%s: calculated %g, measured %g: more than a factor of %g", what, got, want, factor)
	}
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func TestBytesOfStoresInMemory(t *testing.T) {
	keys := seed.Rand(t).Perm(tested)
	for _, state := range []int{8, 100, 500} {
		before := heap()
		backend := memory.New()
		w := store.NewWriteSet()
		put(w, keys, state)
		must(t, backend.Apply(store.Batch{Entries: w.Entries(), Offset: 1}))
		w = nil
		within(t, fmt.Sprint("MB of a store in memory, values of ", state), of(state, true).Costs().Of("stores in memory"), heap()-before, 1.4)
		runtime.KeepAlive(backend)
	}
}

func TestBytesOfLayers(t *testing.T) {
	keys := seed.Rand(t).Perm(tested)
	for _, state := range []int{8, 100} {
		before := heap()
		w := store.NewWriteSet()
		put(w, keys, state)
		measured := heap() - before
		c := of(state, false)
		c.FlushInterval = time.Hour
		within(t, fmt.Sprint("MB of a layer, values of ", state), c.Costs().Of("unflushed layers")/2, measured, 1.4)
		runtime.KeepAlive(w)
	}
}

func TestBytesOfFiles(t *testing.T) {
	rng := seed.Rand(t)
	for _, state := range []int{8, 200} {
		dir := t.TempDir()
		backend, err := bolt.Opener{}.Open(dir, "s")
		must(t, err)
		for round := range int64(2) {
			fill(t, backend, rng, state, round)
		}
		must(t, backend.Close())
		info, err := os.Stat(filepath.Join(dir, "s.db"))
		must(t, err)
		within(t, fmt.Sprint("MB of a file, values of ", state), of(state, false).Costs().Of("file of a task"), float64(info.Size())/(1<<20), 1.5)
	}
}

// fill writes all keys, a quarter with each flush.
func fill(t *testing.T, backend store.Backend, rng *rand.Rand, state int, round int64) {
	t.Helper()
	keys := rng.Perm(tested)
	for i := range int64(4) {
		w := store.NewWriteSet()
		put(w, keys[i*tested/4:(i+1)*tested/4], state)
		must(t, backend.Apply(store.Batch{Entries: w.Sorted(), Offset: 4*round + i + 1}))
	}
}
