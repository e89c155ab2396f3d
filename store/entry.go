package store

import "unsafe"

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte // nil and empty are different on the wire
}

// Entry is the last write of one key inside a write set.
type Entry struct {
	// Key is the key's bytes. It is a string so that looking up a []byte needs
	// no allocation.
	Key string
	// Value is never nil in a live entry and means nothing in a deleted one.
	// It is owned by the entry and overwritten in place by the next Put.
	Value []byte
	// Timestamp is in ms.
	Timestamp int64
	// Headers are those of the write. The slice is shared with the writer.
	Headers []Header
	// Deleted marks a tombstone.
	Deleted bool
	// Local marks a write of which the changelog is not told: rows of an index,
	// and what retention removes. See Layout.
	Local bool
	// Aux is free for the owner of the uncommitted layer. It is 0 in a new
	// entry, survives further writes of the key, and is undone by Rollback.
	Aux int32

	echo   bool   // a version put out of order: the newest one has to be mirrored behind it
	step   uint64 // the step of the owning set that last saved or made the entry
	place  int32  // in the order of the owning set
	hash   uint32 // of the key
	inline [inlineSize]byte
}

const (
	// inlineSize is the room for a small value inside the entry, which spares
	// numbers an allocation of their own.
	inlineSize = 16

	// entryOverhead is what an entry costs beside its bytes: the struct, its
	// slot in the table and in the order, its share of slack. Measured, rounded.
	entryOverhead = 152

	headerOverhead = 48
)

// KeyBytes is a view of the key's bytes without a copy. It must not be changed.
func (e *Entry) KeyBytes() []byte { return viewBytes(e.Key) }

// size is the entry's share of WriteSet.Bytes.
func (e *Entry) size() int {
	n := entryOverhead + len(e.Key) + len(e.Value)
	for i := range e.Headers {
		n += headerOverhead + len(e.Headers[i].Key) + len(e.Headers[i].Value)
	}
	return n
}

// viewBytes returns s as bytes without a copy; nil-ness is not kept: the result
// is never nil.
func viewBytes(s string) []byte {
	if len(s) == 0 {
		return emptyBytes
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// viewString returns b as a string without a copy. It is valid as long as b is
// neither changed nor re-used.
func viewString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

var emptyBytes = make([]byte, 0)
