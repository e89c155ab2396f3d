package bolt

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/store"
)

// Apply implements store.Backend: in one bbolt transaction, or in several if one
// would take more than Options.TxBytes, with the help of a redo file.
func (b *Backend) Apply(batch store.Batch) error {
	return b.alone(func() error {
		batch.Sort()
		return b.write(pendingBatch(batch.Entries, batch.Offset))
	})
}

// alone calls fn as the only one who writes, after what was left to be done.
func (b *Backend) alone(fn func() error) (err error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.beginApply(); err != nil {
		return err
	}
	defer b.endApply()
	defer b.caughtWrite(&err, debug.SetPanicOnFault(true))
	if err := b.redo(); err != nil {
		return fmt.Errorf("bolt: write %s: finish the batch before: %w", b.path, err)
	}
	if err := fn(); err != nil {
		return fmt.Errorf("bolt: write %s: %w", b.path, err)
	}
	return nil
}

func (b *Backend) beginApply() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	b.applying = true
	b.endShared()
	return nil
}

func (b *Backend) endApply() {
	b.mu.Lock()
	b.applying = false
	b.mu.Unlock()
}

// pending is a batch that is being applied. After an error it is of no use any more.
type pending struct {
	entries []*store.Entry         // ascending: what comes next, as far as it is at hand
	more    func() []*store.Entry  // what follows, none at the end; nil: nothing
	all     iter.Seq[*store.Entry] // the whole batch
	offset  int64                  // that the file reaches with it; negative: stays
	applied int                    // entries
	redo    uint64                 // the id of the redo file that holds them, 0: none does
}

// pendingBatch is a batch that is at hand as a whole.
func pendingBatch(entries []*store.Entry, offset int64) *pending {
	return &pending{entries: entries, all: slices.Values(entries), offset: offset}
}

// left reports whether there is something to apply, and has it at hand.
func (p *pending) left() bool {
	if len(p.entries) == 0 && p.more != nil {
		p.entries = p.more()
	}
	return len(p.entries) > 0
}

// write applies a batch in as many transactions as it takes.
func (b *Backend) write(p *pending) error {
	for {
		if err := b.writePart(p); err != nil {
			return err
		}
		if len(p.entries) == 0 {
			break
		}
	}
	if p.redo != 0 {
		_ = removeIfThere(b.path + redoSuffix) // the next Open will
	}
	return nil
}

// writePart is one transaction.
func (b *Backend) writePart(p *pending) error {
	applied := 0
	err := b.transact(func(tx *bbolt.Tx, data *bbolt.Bucket) (next state, err error) {
		applied, next, err = b.fill(tx, data, p)
		return next, err
	})
	if err == nil {
		p.applied = applied
	}
	return err
}

// transact is a write transaction: fill writes, and returns what the file holds then. It
// is not db.Update: that one, after a panic, scans the
// damaged file on a goroutine where nothing catches the next panic. Tx.Rollback
// does not.
func (b *Backend) transact(fill func(*bbolt.Tx, *bbolt.Bucket) (state, error)) error {
	tx, err := b.beginTx(true)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended && !rolledBack(tx) {
			b.stuck.Store(true)
		}
	}()
	data, meta := tx.Bucket(dataBucket), tx.Bucket(metaBucket)
	if data == nil || meta == nil {
		return corrupt(b.path, errNoBucket)
	}
	next, err := fill(tx, data)
	if err != nil {
		return err
	}
	if err := meta.Put(stateKey, next.encode(b.name)); err != nil {
		return err
	}
	err = tx.Commit()
	ended = true // bbolt has rolled back if it failed
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.state = next
	b.mu.Unlock()
	return nil
}

// rolledBack reports whether the transaction could be ended.
func rolledBack(tx *bbolt.Tx) (ok bool) {
	defer func() { _ = recover() }()
	return tx.Rollback() == nil
}

// fill writes as many of the entries as the transaction is to hold, and returns
// how many are applied with it and what the file then holds.
func (b *Backend) fill(tx *bbolt.Tx, data *bbolt.Bucket, p *pending) (applied int, next state, err error) {
	w := writer{tx: tx, data: data, contents: b.state.contents}
	applied = p.applied
	for full := false; !full && p.left(); full = len(p.entries) > 0 {
		n, err := w.fill(p.entries, b.opt.TxBytes)
		if err != nil {
			return 0, state{}, b.damaged(err)
		}
		applied, p.entries = applied+n, p.entries[n:]
	}
	next = state{offset: b.state.offset, contents: w.contents}
	switch {
	case len(p.entries) > 0:
		if p.redo == 0 {
			p.redo = uint64(tx.ID())
			if err := b.opt.writeRedo(b.path, p); err != nil {
				return 0, state{}, err
			}
		}
		next.redo = redoMark{id: p.redo, applied: int64(applied)}
	case p.offset >= 0:
		next.offset = p.offset
	}
	return applied, next, nil
}

// damaged makes an ErrCorrupt of what is wrong with an entry.
func (b *Backend) damaged(err error) error {
	if errors.Is(err, errChecksum) || errors.Is(err, errShortValue) {
		return corrupt(b.path, err)
	}
	return err
}

// writer puts entries into the data bucket, and keeps account of what it holds.
type writer struct {
	contents
	tx     *bbolt.Tx
	data   *bbolt.Bucket
	cursor *bbolt.Cursor // nil: nothing that the bucket held before is overwritten
	values arena
	key    []byte
	bytes  int64
}

// inodeBytes is what bbolt keeps in memory for each element of a page it changes.
const inodeBytes = 64

// fill writes entries until the transaction has become large, and returns how
// many.
func (w *writer) fill(entries []*store.Entry, limit int64) (int, error) {
	if appends(w.data, entries) {
		w.data.FillPercent = 0.95 // pages of a bulk load are not going to grow
	} else {
		w.cursor = w.data.Cursor()
	}
	for i, e := range entries {
		if w.full(i, limit) {
			return i, nil
		}
		if err := w.put(e); err != nil {
			return i, err
		}
	}
	return len(entries), nil
}

// full looks now and then whether the transaction has become large.
func (w *writer) full(entries int, limit int64) bool { return entries%64 == 63 && w.size() > limit }

// size is roughly the memory of the transaction.
func (w *writer) size() int64 {
	stats := w.tx.Stats()
	return w.bytes + stats.NodeCount*int64(w.tx.DB().Info().PageSize)
}

func (w *writer) put(e *store.Entry) error {
	w.key = appendKey(w.key[:0], e.KeyBytes())
	there, err := w.forget()
	switch {
	case err != nil:
		return err
	case !e.Deleted:
		return w.insert(e.KeyBytes(), e.Value, e.Timestamp)
	case there:
		w.bytes += int64(len(e.Key) + inodeBytes)
		return w.data.Delete(w.key)
	}
	return nil
}

// insert puts an entry whose key holds nothing, as far as the account goes.
func (w *writer) insert(key, value []byte, ts int64) error {
	w.key = appendKey(w.key[:0], key)
	stored := w.values.take(crcSize + tsSize + len(value))
	w.add(seal(stored, w.key, ts, value))
	w.bytes += int64(len(key) + len(value) + inodeBytes)
	return w.data.Put(w.key, stored) // copies the key, keeps the value
}

// forget takes what the key holds out of the account.
func (w *writer) forget() (there bool, err error) {
	if w.cursor == nil {
		return false, nil
	}
	k, v := w.cursor.Seek(w.key)
	if string(k) != string(w.key) {
		return false, nil
	}
	_, _, crc, err := unseal(k, v)
	if err != nil {
		return true, err
	}
	w.remove(crc)
	return true, nil
}

// appends tells whether all entries lie above what the bucket holds.
func appends(data *bbolt.Bucket, entries []*store.Entry) bool {
	if len(entries) == 0 {
		return false
	}
	last, _ := data.Cursor().Last()
	return last == nil || string(last[1:]) < entries[0].Key
}

// arena hands out pieces of larger allocations.
type arena struct{ rest []byte }

func (a *arena) take(n int) []byte {
	const chunk = 64 << 10
	if n > chunk/4 {
		return make([]byte, n)
	}
	if n > len(a.rest) {
		a.rest = make([]byte, chunk)
	}
	piece := a.rest[:n:n]
	a.rest = a.rest[n:]
	return piece
}
