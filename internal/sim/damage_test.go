package sim_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// fragile opens stores whose data turns out damaged now and then: in a read, in a write, or when it is opened. It stays so
// until it is set aside.
type fragile struct {
	store.Opener
	chance func(perThousand int) bool
	broken map[string]bool // by path, of all that exist
	broke  int
	aside  int
}

type fragileBackend struct {
	store.Backend
	path string
	from *fragile
}

func (f *fragile) damaged(path string, perThousand int) error {
	if broken, exists := f.broken[path]; exists && !broken && f.chance(perThousand) {
		f.broken[path] = true
		f.broke++
	}
	if f.broken[path] {
		return fmt.Errorf("%w: %s", store.ErrCorrupt, path)
	}
	return nil
}

func (f *fragile) Open(dir, name string) (store.Backend, error) {
	path := filepath.Join(dir, name)
	if err := f.damaged(path, 30); err != nil {
		return nil, err
	}
	f.broken[path] = false
	b, err := f.Opener.Open(dir, name)
	return &fragileBackend{b, path, f}, err
}

func (f *fragile) SetAside(dir, name string) (string, error) {
	f.aside++
	delete(f.broken, filepath.Join(dir, name))
	return f.Opener.SetAside(dir, name)
}

func (f *fragile) Remove(dir, name string) error {
	delete(f.broken, filepath.Join(dir, name))
	return f.Opener.Remove(dir, name)
}

func (b *fragileBackend) Get(dst, key []byte) ([]byte, int64, bool, error) {
	if err := b.from.damaged(b.path, 30); err != nil {
		return dst, 0, false, err
	}
	return b.Backend.Get(dst, key)
}

func (b *fragileBackend) Apply(batch store.Batch) error {
	if err := b.from.damaged(b.path, 60); err != nil {
		return err
	}
	return b.Backend.Apply(batch)
}

func (b *fragileBackend) Load(rows iter.Seq[store.Pair], offset int64) error {
	if err := b.from.damaged(b.path, 60); err != nil {
		return err
	}
	return b.Backend.Load(rows, offset)
}

// A store that turns out damaged, whenever that is, is set aside and rebuilt. The worker goes on, and every count is exact.
func TestDamagedStoresAreRebuilt(t *testing.T) {
	t.Parallel()
	topo := wordCount(t)
	broke, aside := 0, 0
	seeds(t, 2*time.Second, func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := draw(rng, eos.ExactlyOnce)
		f := &fragile{Opener: bolt.Opener{Options: bolt.Options{NoSync: true}}, broken: map[string]bool{}}
		p.opener, p.dir = f, t.TempDir()
		partitions := int32(2 + rng.IntN(3))
		w := newWorld(t, seed, topo, map[string]int32{"lines": partitions, "word-counts": 1}, p)
		f.chance = w.chance
		input, want := w.speak(rng, partitions)
		w.run(input)
		w.check(want)
		w.end()
		broke, aside = broke+f.broke, aside+f.aside
	})
	t.Logf("%d times damaged, %d times set aside", broke, aside)
	if broke == 0 || aside == 0 {
		t.Error("nothing was damaged")
	}
}
