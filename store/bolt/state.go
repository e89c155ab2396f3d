package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// format is the version of what is in the file. Version 1 had no checksums.
const format = 2

var (
	errNoBucket = errors.New("a bucket is missing")
	errState    = errors.New("the record of the store's state is damaged")

	dataBucket = []byte("data")
	metaBucket = []byte("meta")

	formatKey = []byte("format")
	nameKey   = []byte("store")
	stateKey  = []byte("state")
)

// state says what the file holds. It changes in the same transaction.
type state struct {
	offset int64 // in the changelog, exclusive; -1: none
	contents
	redo redoMark
}

// redoMark says how far a batch is applied whose rest is in the redo file. The zero mark means that none is under way.
type redoMark struct {
	id      uint64 // of the redo file, never 0, or loading
	applied int64  // entries
}

const stateSize = 5*8 + crcSize

// encode returns the record of the meta bucket. Its checksum covers the store's name as well.
func (s state) encode(name string) []byte {
	b := make([]byte, 0, stateSize)
	for _, n := range []uint64{uint64(s.offset), uint64(s.count), s.sum, s.redo.id, uint64(s.redo.applied)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint32(b, stateChecksum(name, b))
}

func decodeState(name string, b []byte) (state, error) {
	if len(b) != stateSize || binary.BigEndian.Uint32(b[stateSize-crcSize:]) != stateChecksum(name, b[:stateSize-crcSize]) {
		return state{}, errState
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return state{
		offset: int64(at(0)), contents: contents{count: int64(at(1)), sum: at(2)},
		redo: redoMark{id: at(3), applied: int64(at(4))},
	}, nil
}

func stateChecksum(name string, b []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(name), castagnoli), castagnoli, b)
}

// readState checks that a meta bucket is the one of the store, and returns what it says. A wrong one is treated as a
// damaged one: the file is set aside and nothing is lost.
func readState(name string, get func(key []byte) []byte) (state, error) {
	if f := get(formatKey); string(f) != string([]byte{format}) {
		return state{}, fmt.Errorf("format %v, this version reads %d", f, format)
	}
	if n := get(nameKey); string(n) != name {
		return state{}, fmt.Errorf("holds store %q, not %q", n, name)
	}
	return decodeState(name, get(stateKey))
}

var errNew = errors.New("a new file")

// readMeta reads the state of an open file.
func readMeta(db *bbolt.DB, name string) (s state, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Cursor().First(); k == nil {
			return errNew
		}
		meta := tx.Bucket(metaBucket)
		if meta == nil || tx.Bucket(dataBucket) == nil {
			return errNoBucket
		}
		s, err = readState(name, meta.Get)
		return err
	})
	return s, err
}

// writeMeta makes the buckets of a new file.
func writeMeta(tx *bbolt.Tx, name string, s state) error {
	if _, err := tx.CreateBucket(dataBucket); err != nil {
		return err
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	return errors.Join(meta.Put(formatKey, []byte{format}), meta.Put(nameKey, []byte(name)), meta.Put(stateKey, s.encode(name)))
}
