package bolt

import (
	"iter"
	"math"

	"go.etcd.io/bbolt"

	"github.com/millrace-streams/millrace/store"
)

// loading, as the id of a redo mark, says that the file is being loaded for the first time, or that a process died in the
// middle of it: nothing of what is in it counts. It spares a first load the redo file.
const loading = math.MaxUint64

// Load implements store.Backend: as Apply does it if the file holds something, else in transactions of which only the last
// one makes it count.
func (b *Backend) Load(rows iter.Seq[store.Pair], offset int64) error {
	return b.alone(func() error {
		if b.state.offset < 0 && b.state.count == 0 {
			return b.load(rows, offset)
		}
		return b.loadOnto(rows, offset)
	})
}

// load fills an empty file.
func (b *Backend) load(rows iter.Seq[store.Pair], offset int64) error {
	next, stop := iter.Pull(rows)
	defer stop()
	row, more := next()
	for {
		err := b.transact(func(tx *bbolt.Tx, data *bbolt.Bucket) (state, error) {
			data.FillPercent = 0.95 // rows ascend: no page is going to grow
			w := writer{tx: tx, data: data, contents: b.state.contents}
			for i := 0; more && !w.full(i, b.opt.TxBytes); i++ {
				if row.Value != nil {
					if err := w.insert(row.Key, row.Value, row.Timestamp); err != nil {
						return state{}, err
					}
				}
				row, more = next()
			}
			if more {
				return state{offset: -1, contents: w.contents, redo: redoMark{id: loading}}, nil
			}
			return state{offset: offset, contents: w.contents}, nil
		})
		if err != nil || !more {
			return err
		}
	}
}

// wipe empties a file that was being loaded.
func (b *Backend) wipe() error {
	return b.transact(func(tx *bbolt.Tx, _ *bbolt.Bucket) (state, error) {
		err := tx.DeleteBucket(dataBucket)
		if err == nil {
			_, err = tx.CreateBucket(dataBucket)
		}
		return state{offset: -1}, err
	})
}

// A load has so many rows at a time as entries, of about so many bytes.
const loadRows, loadBytes = 4096, 1 << 20

// loadOnto applies rows to a file that holds something.
func (b *Backend) loadOnto(rows iter.Seq[store.Pair], offset int64) error {
	next, stop := iter.Pull(entriesOf(rows))
	defer stop()
	run := make([]store.Entry, loadRows)
	entries := make([]*store.Entry, 0, loadRows)
	var values []byte
	return b.write(&pending{all: entriesOf(rows), offset: offset, more: func() []*store.Entry {
		entries, values = entries[:0], values[:0]
		for len(entries) < loadRows && len(values) < loadBytes {
			e, ok := next()
			if !ok {
				break
			}
			from := len(values)
			values = append(values, e.Value...)
			at := &run[len(entries)]
			*at = *e
			at.Value = values[from:]
			entries = append(entries, at)
		}
		return entries
	}})
}

// entriesOf makes entries of rows. Each is valid until the next one, as the rows are.
func entriesOf(rows iter.Seq[store.Pair]) iter.Seq[*store.Entry] {
	return func(yield func(*store.Entry) bool) {
		var e store.Entry
		for row := range rows {
			e.Key, e.Value, e.Deleted, e.Timestamp = string(row.Key), row.Value, row.Value == nil, row.Timestamp
			if !yield(&e) {
				return
			}
		}
	}
}
