package store

import "unsafe"

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte // nil and empty are different on the wire
}

// Entry is the last write of one key inside a write set. The order of its fields
// puts what a look-up needs into one cache line, and makes it two lines long.
type Entry struct {
	// Key is the key's bytes. It is a string so that looking up a []byte needs
	// no allocation, but its bytes may lie in the entry: who keeps it for longer
	// than the entry's set has to clone it.
	Key       string
	inlineKey [inlineSize]byte
	hash      uint32 // of the key
	place     int32  // in the order of the owning set

	// Timestamp is in ms.
	Timestamp int64
	step      uint64 // the step of the owning set that last saved or made the entry
	// Value is never nil in a live entry and means nothing in a deleted one.
	// It is owned by the entry and overwritten in place by the next Put.
	Value       []byte
	inlineValue [inlineSize]byte
	// Headers are those of the write. The slice is shared with the writer.
	Headers []Header
	// Deleted marks a tombstone.
	Deleted bool
	// Local marks a write of which the changelog is not told: rows of an index,
	// and what retention removes. See Layout.
	Local bool
	echo  bool // a version put out of order: the newest one has to be mirrored behind it
	// Aux is free for the owner of the uncommitted layer. It is 0 in a new
	// entry, survives further writes of the key, and is undone by Rollback.
	Aux int32
}

// setKey copies the key, into the entry if it is short.
func (e *Entry) setKey(key []byte) {
	if len(key) > inlineSize {
		e.Key = string(key)
		return
	}
	n := copy(e.inlineKey[:], key)
	e.Key = viewString(e.inlineKey[:n])
}

// setMeta sets what an entry of the changelog holds beside key and value. Most have
// no headers: writing a pointer costs something while the collector is at work.
func (e *Entry) setMeta(ts int64, headers []Header, deleted bool) {
	e.Timestamp, e.Deleted, e.Local = ts, deleted, false
	if e.Headers != nil || headers != nil {
		e.Headers = headers
	}
}

const (
	// inlineSize is the room for a short key, and for a small value, inside the
	// entry, which spares them an allocation and a cache miss.
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
