package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, o bolt.Opener, dir string) store.Backend {
	t.Helper()
	b, err := o.Open(dir, "s")
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// batch makes entries k<from>..k<to-1> of the given value; "" deletes.
func batch(from, to int, value string, offset int64) store.Batch {
	w := store.NewWriteSet()
	for i := from; i < to; i++ {
		if key := fmt.Appendf(nil, "k%07d", i); value == "" {
			w.Delete(key, 7, nil)
		} else {
			w.Put(key, []byte(value), 7, nil)
		}
	}
	return store.Batch{Entries: w.Sorted(), Offset: offset}
}

const damageKeys = 3000

// sample is the bytes of a store file with some branch and many leaf pages, one
// value with overflow pages, and free pages.
func sample(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	b, err := fast.Open(dir, "s")
	must(t, err)
	must(t, b.Apply(batch(0, damageKeys, strings.Repeat("v", 40), 10)))
	must(t, b.Apply(batch(damageKeys, damageKeys+1, strings.Repeat("large", 5000), 11)))
	must(t, b.Apply(batch(0, 20, "changed", 12)))
	must(t, b.Close())
	data, err := os.ReadFile(filepath.Join(dir, "s.db"))
	must(t, err)
	return data
}

// openBytes opens a file of the given content.
func openBytes(t *testing.T, data []byte) (store.Backend, string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	must(t, os.WriteFile(path, data, 0o600))
	b, err := fast.Open(dir, "s")
	if err == nil {
		t.Cleanup(func() { _ = b.Close() })
	}
	return b, path, err
}

func wantCorrupt(t *testing.T, data []byte) {
	t.Helper()
	_, path, err := openBytes(t, data)
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Fatalf("got %v, want ErrCorrupt that names %s", err, path)
	}
	// The lock is free again, the file can be set aside, the store begun afresh.
	dir := filepath.Dir(path)
	aside, err := fast.SetAside(dir, "s")
	must(t, err)
	if _, err := os.Stat(aside); err != nil {
		t.Fatal(err)
	}
	b := open(t, fast, dir)
	if _, ok := b.Offset(); ok {
		t.Fatal("a fresh store has no offset")
	}
	must(t, b.Apply(batch(0, 10, "v", 1)))
	must(t, b.Close())
	must(t, fast.Remove(dir, "s"))
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestFieldReport48(t *testing.T) {
	t.Parallel()
	data, page := sample(t), os.Getpagesize()
	garbage := func(at, n int) []byte {
		damaged := append([]byte(nil), data...)
		for i := at; i < min(at+n, len(damaged)); i++ {
			damaged[i] = 0xA5
		}
		return damaged
	}
	t.Run("undamaged", func(t *testing.T) { readAll(t, data, 12) })
	t.Run("both meta pages", func(t *testing.T) { wantCorrupt(t, garbage(0, 2*page)) })
	t.Run("first meta page", func(t *testing.T) { readAll(t, garbage(0, page), 11, 12) })
	t.Run("second meta page", func(t *testing.T) { readAll(t, garbage(page, page), 11, 12) })
	t.Run("all but the meta pages", func(t *testing.T) { wantCorrupt(t, garbage(2*page, len(data))) })
	t.Run("no store file", func(t *testing.T) { wantCorrupt(t, []byte(strings.Repeat("text", page))) })
	for _, size := range []int{1, 100, page, page + 1, 2 * page, 3 * page, len(data) / 8} {
		t.Run(fmt.Sprintf("cut to %d", size), func(t *testing.T) { wantCorrupt(t, data[:size]) })
	}
	t.Run("empty", func(t *testing.T) {
		_, _, err := openBytes(t, nil)
		must(t, err)
	})
}

// readAll opens undamaged data, or data that has one meta page left, and wants
// it as of one of the offsets.
func readAll(t *testing.T, data []byte, offsets ...int64) {
	t.Helper()
	b, _, err := openBytes(t, data)
	must(t, err)
	got, _ := b.Offset()
	for _, want := range offsets {
		if got == want {
			pairs, err := b.Scan(nil, store.Range{}, damageKeys+2)
			must(t, err)
			if len(pairs) != damageKeys+1 {
				t.Fatalf("%d pairs", len(pairs))
			}
			return
		}
	}
	t.Fatalf("offset %d, want one of %v", got, offsets)
}

// Cutting pages off the end, one by one, either hits only free space or is
// noticed by Open.
func TestTruncation(t *testing.T) {
	t.Parallel()
	data, page := sample(t), os.Getpagesize()
	whole, cut := 0, 0
	for size := len(data) - page; size >= 2*page; size -= 7 * page {
		b, _, err := openBytes(t, data[:size])
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("size %d: %v", size, err)
			}
			cut++
			continue
		}
		exercise(t, b, true)
		whole++
	}
	t.Logf("%d openable, %d refused", whole, cut)
	if cut == 0 {
		t.Fatal("no cut was noticed")
	}
}

// Random damage anywhere never crashes the process: Open refuses the file, or
// every call answers.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	data := sample(t)
	refused := 0
	const rounds = 100
	for range rounds {
		b, _, err := openBytes(t, damage(rng, data))
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		exercise(t, b, false)
	}
	t.Logf("%d of %d refused", refused, rounds)
}

// damage returns a copy with a few bytes, or whole pages, changed.
func damage(rng *rand.Rand, data []byte) []byte {
	page := os.Getpagesize()
	d := append([]byte(nil), data...)
	at := rng.IntN(len(d) / page)
	whole := d[at*page : (at+1)*page]
	switch rng.IntN(4) {
	case 0: // another page's content
		other := rng.IntN(len(d) / page)
		copy(whole, data[other*page:])
	case 1: // zeroes from somewhere on
		clear(whole[rng.IntN(page):])
	case 2: // the header and the first elements
		for range 1 + rng.IntN(4) {
			whole[rng.IntN(64)] = byte(rng.Uint32())
		}
	default:
		for range 1 + rng.IntN(20) {
			d[rng.IntN(len(d))] ^= 1 << rng.IntN(8)
		}
	}
	return d
}

// exercise makes every kind of call; if sound, none may fail.
func exercise(t *testing.T, b store.Backend, sound bool) {
	t.Helper()
	acceptable := func(err error) {
		if err != nil && (sound || !errors.Is(err, store.ErrCorrupt)) {
			t.Fatal(err)
		}
	}
	for i := 0; i < damageKeys; i += 50 {
		_, _, _, err := b.Get(nil, fmt.Appendf(nil, "k%07d", i))
		acceptable(err)
	}
	_, err := b.Scan(nil, store.Range{}, 2*damageKeys)
	acceptable(err)
	_, err = b.Scan(nil, store.Range{Reverse: true}, 2*damageKeys)
	acceptable(err)
	acceptable(b.Apply(batch(0, damageKeys, "after", 13)))
	acceptable(b.Apply(batch(0, damageKeys, "", 14)))
	must(t, b.Close())
}

// A file that is damaged while it is open, behind the check's back: whatever call
// comes across it first, and whatever bbolt was about to do, all of them say so, and
// the file can be closed, put aside, and begun afresh.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	page := int64(os.Getpagesize())
	harms := map[string]func(f *os.File, size int64) error{
		"cut":                   func(f *os.File, _ int64) error { return f.Truncate(2 * page) },
		"emptied":               func(f *os.File, _ int64) error { return f.Truncate(0) },
		"zeroes":                func(f *os.File, size int64) error { return overwrite(f, 2*page, size, 0) },
		"garbage":               func(f *os.File, size int64) error { return overwrite(f, 2*page, size, 0xA5) },
		"zeroes everywhere":     func(f *os.File, size int64) error { return overwrite(f, 0, size, 0) },
		"garbage in meta pages": func(f *os.File, _ int64) error { return overwrite(f, 0, 2*page, 0xA5) },
	}
	calls := []func(b store.Backend) error{
		func(b store.Backend) error { return b.Apply(batch(0, damageKeys, "after", 13)) },
		func(b store.Backend) error { _, _, _, err := b.Get(nil, []byte("k0000000")); return err },
		func(b store.Backend) error { _, err := b.Scan(nil, store.Range{}, 10); return err },
	}
	for name, harm := range harms {
		for first := range calls {
			for _, read := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", call ", first, ", read before ", read), func(t *testing.T) {
					t.Parallel()
					b, path, err := openBytes(t, sample(t))
					must(t, err)
					if read { // a read transaction is open
						must(t, calls[1](b))
					}
					f, err := os.OpenFile(path, os.O_RDWR, 0)
					must(t, err)
					info, err := f.Stat()
					must(t, err)
					must(t, harm(f, info.Size()))
					must(t, f.Close())
					wantDamaged(t, b, path, calls[first:], calls[:first])
				})
			}
		}
	}
}

func overwrite(f *os.File, from, to int64, with byte) error {
	_, err := f.WriteAt(bytes.Repeat([]byte{with}, int(to-from)), from)
	return err
}

// wantDamaged makes the calls, of which the first may not come across the damage, but one
// of all must, and those after it.
func wantDamaged(t *testing.T, b store.Backend, path string, calls, more []func(store.Backend) error) {
	t.Helper()
	known := false
	for _, call := range slices.Concat(calls, more, calls) {
		err := call(b)
		if known = known || err != nil; known && !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("got %v, want ErrCorrupt", err)
		}
	}
	if !known {
		t.Fatal("nobody has noticed")
	}
	must(t, b.Close())
	began := time.Now()
	if _, err := fast.SetAside(filepath.Dir(path), "s"); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited >= 5*time.Second {
		t.Errorf("the lock was waited for: %v", waited)
	}
	open(t, fast, filepath.Dir(path))
}

// A bit that flips inside an entry while its file is open is noticed by whoever
// comes across it, and from then on by everybody.
func TestFlippedBitWhileOpen(t *testing.T) {
	t.Parallel()
	key := []byte("k0000700")
	for name, come := range map[string]func(b store.Backend) error{
		"get":   func(b store.Backend) error { _, _, _, err := b.Get(nil, key); return err },
		"scan":  func(b store.Backend) error { _, err := b.Scan(nil, store.Range{}, 1000); return err },
		"apply": func(b store.Backend) error { return b.Apply(batch(700, 701, "after", 13)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := sample(t)
			b, path, err := openBytes(t, data)
			must(t, err)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			for at := 0; ; { // wherever there is an image of its page
				i := bytes.Index(data[at:], key)
				if i < 0 {
					break
				}
				at += i + len(key)
				_, err := f.WriteAt([]byte{data[at+20] ^ 8}, int64(at+20))
				must(t, err)
			}
			must(t, f.Close())
			if _, _, _, err := b.Get(nil, []byte("k0000000")); err != nil {
				t.Fatalf("elsewhere: %v", err)
			}
			if err := come(b); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want ErrCorrupt that names %s", err, path)
			}
			if _, _, _, err := b.Get(nil, []byte("k0000000")); !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("afterwards: %v", err)
			}
		})
	}
}

// Files of the format before this one are refused by name.
func TestOldFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		data, err := tx.CreateBucket([]byte("data"))
		must(t, err)
		must(t, data.Put([]byte("\x01k"), []byte("\x00\x00\x00\x00\x00\x00\x00\x07value")))
		meta, err := tx.CreateBucket([]byte("meta"))
		must(t, err)
		must(t, meta.Put([]byte("format"), []byte{1}))
		return meta.Put([]byte("store"), []byte("s"))
	}))
	must(t, db.Close())
	if _, err := fast.Open(filepath.Dir(path), "s"); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "format [1]") {
		t.Fatalf("got %v", err)
	}
}

func TestFileOfAnotherStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, open(t, fast, dir).Close())
	must(t, os.Rename(filepath.Join(dir, "s.db"), filepath.Join(dir, "other.db")))
	if _, err := fast.Open(dir, "other"); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), `"s"`) {
		t.Fatalf("got %v", err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x"} {
		if _, err := fast.Open(dir, name); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}

// The part of field report 49 that is the backend's: a lock that is held is an
// error in time, and removing a store races with opening it without harm.
func TestFieldReport49(t *testing.T) {
	t.Parallel()
	o := bolt.Opener{Options: bolt.Options{NoSync: true, LockTimeout: 100 * time.Millisecond}}
	dir := t.TempDir()
	b := open(t, o, dir)
	path := filepath.Join(dir, "s.db")
	_, errOpen := o.Open(dir, "s")
	_, errAside := o.SetAside(dir, "s")
	for _, err := range []error{errOpen, errAside, o.Remove(dir, "s")} {
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want ErrLocked that names %s", err, path)
		}
	}
	must(t, b.Apply(batch(0, 10, "v", 3)))
	must(t, b.Close())
	again := open(t, o, dir)
	if offset, _ := again.Offset(); offset != 3 {
		t.Fatalf("offset %d: the held store was touched", offset)
	}
	must(t, again.Close())
	raceRemove(t, bolt.Opener{Options: bolt.Options{NoSync: true}}, dir)
}

// raceRemove opens and writes a store while another goroutine removes it. What
// the owner wrote must be there when it comes back, unless it was removed in
// between: never an orphan, never a lock left behind.
func raceRemove(t *testing.T, o bolt.Opener, dir string) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	impatient := bolt.Opener{Options: bolt.Options{LockTimeout: time.Nanosecond}}
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := impatient.Remove(dir, "s"); err != nil && !errors.Is(err, store.ErrLocked) {
				done <- err
				return
			}
		}
	}()
	path := filepath.Join(dir, "s.db")
	for range 20 {
		b, err := o.Open(dir, "s")
		must(t, err)
		must(t, b.Apply(batch(0, 10, "v", 3)))
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file of an open store is gone: %v", err)
		}
		must(t, b.Close())
	}
	close(stop)
	must(t, <-done)
}
