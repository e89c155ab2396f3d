// Package storetest is the conformance suite of store backends. A backend
// passes it by itself and below the layers of a store:
//
//	func TestBackend(t *testing.T) {
//		storetest.Run(t, mine.Opener{}, storetest.Features{Durable: true})
//	}
//
// Random tests print the seed they ran with; MILLRACE_SEED=<seed> runs them
// with it again.
package storetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-streams/millrace/store"
)

// Features is what a backend declares about itself.
type Features struct {
	// Durable: data outlives Close and Open. It must be what the opener says.
	Durable bool
	// CrashCopy: between two calls, a copy of the folder's files is what would
	// be found after a crash.
	CrashCopy bool
}

// Run runs the suite.
func Run(t *testing.T, opener store.Opener, f Features) {
	if opener.Durable() != f.Durable {
		t.Fatalf("opener.Durable() = %v", opener.Durable())
	}
	tests := []struct {
		name string
		run  func(*testing.T, store.Opener, Features)
	}{
		{"Offset", testOffset},
		{"GetAppends", testGetAppends},
		{"ScanBounds", testScanBounds},
		{"ScanGoesOn", testScanGoesOn},
		{"ApplyUnsorted", testApplyUnsorted},
		{"Closed", testClosed},
		{"ConcurrentReaders", testConcurrentReaders},
		{"Reopen", testReopen},
		{"RemoveAndSetAside", testRemove},
		{"Random", testRandom},
		{"Layouts", testLayouts},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, opener, f)
		})
	}
	t.Run("FieldReport24", func(t *testing.T) { t.Parallel(); FieldReport24(t, opener) })
	t.Run("FieldReport44Windows", func(t *testing.T) { t.Parallel(); FieldReport44Windows(t, opener) })
	t.Run("FieldReport50", func(t *testing.T) { t.Parallel(); FieldReport50(t, opener) })
	t.Run("FieldReport44", func(t *testing.T) { t.Parallel(); FieldReport44(t, opener) })
	t.Run("FieldReport46", func(t *testing.T) { t.Parallel(); FieldReport46(t, opener) })
}

func open(t testing.TB, opener store.Opener, dir, name string) store.Backend {
	t.Helper()
	b, err := opener.Open(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flush moves everything committed into the backend.
func flush(t testing.TB, l *store.Layered) {
	t.Helper()
	batch, ok := l.BeginFlush()
	if !ok {
		return
	}
	err := l.Backend().Apply(batch)
	l.EndFlush(err)
	check(t, err)
}

func commit(l *store.Layered, offset int64) {
	l.Prepare()
	l.Committed(offset)
}

func putString(t testing.TB, l *store.Layered, key, value string) {
	t.Helper()
	_, err := l.Put([]byte(key), []byte(value), 1, nil)
	check(t, err)
}

func deleteString(t testing.TB, l *store.Layered, key string) {
	t.Helper()
	_, err := l.Delete([]byte(key), 1, nil)
	check(t, err)
}

// entries makes a batch's entries; a nil value is a tombstone.
func entries(pairs ...store.Pair) []*store.Entry {
	w := store.NewWriteSet()
	for _, p := range pairs {
		if p.Value == nil {
			w.Delete(p.Key, p.Timestamp, nil)
		} else {
			w.Put(p.Key, p.Value, p.Timestamp, nil)
		}
	}
	return w.Sorted()
}

func pair(key, value string) store.Pair {
	return store.Pair{Key: []byte(key), Value: []byte(value), Timestamp: 7}
}

func apply(t testing.TB, b store.Backend, offset int64, pairs ...store.Pair) {
	t.Helper()
	check(t, b.Apply(store.Batch{Entries: entries(pairs...), Offset: offset}))
}

// copyDir is the folder as a crash would leave it.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.Base(path)), data, 0o600)
	}))
	return to
}
