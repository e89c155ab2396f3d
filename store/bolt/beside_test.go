package bolt_test

import (
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/storetest"
)

// besideOpener opens files that are read as queries read them.
type besideOpener struct{ bolt.Opener }

type besideBackend struct {
	store.Backend
	beside store.BackendReader
}

// Open implements store.Opener.
func (o besideOpener) Open(dir, name string) (store.Backend, error) {
	b, err := o.Opener.Open(dir, name)
	if err != nil {
		return nil, err
	}
	return besideBackend{b, b.(store.SharedBackend).Beside()}, nil
}

// Get implements store.BackendReader.
func (b besideBackend) Get(dst, key []byte) ([]byte, int64, bool, error) {
	return b.beside.Get(dst, key)
}

// Scan implements store.BackendReader.
func (b besideBackend) Scan(dst []store.Pair, r store.Range, limit int) ([]store.Pair, error) {
	return b.beside.Scan(dst, r, limit)
}

// What readers beside the worker see is what it sees.
func TestBeside(t *testing.T) {
	t.Parallel()
	storetest.Run(t, besideOpener{fast}, storetest.Features{Durable: true, CrashCopy: true})
}
