// Package serde turns keys and values of Go types into the bytes that Kafka
// and the state stores hold, and back.
//
// The scalar serdes write the same bytes as Kafka's Java serializers, so that
// a topic or a changelog can be shared with, or taken over from, a Java
// application:
//
//	String   StringSerializer    the bytes of the string, UTF-8 by convention
//	Bytes    ByteArraySerializer the bytes as they are
//	Int32    IntegerSerializer   4 bytes, big-endian two's complement
//	Int64    LongSerializer      8 bytes, big-endian two's complement
//	Float64  DoubleSerializer    8 bytes, big-endian IEEE 754 bits
//
// [JSON] and the package serde/avro encode structured values, and [Func] makes
// a serde of two functions.
//
// # Null is not empty
//
// A null (absent) key or value never reaches a serde: it is handled above, and
// marks a tombstone in tables and changelogs. An empty string is a value like
// any other. It encodes as zero bytes, in a slice that is empty but not nil,
// and decodes to an empty, non-nil value again.
//
// # Keys
//
// Equal keys must have equal bytes, because partitions and stores are chosen
// by bytes. All serdes of this package have that property, as long as a type
// given to [JSON] marshals itself deterministically.
//
// # Order
//
// Stores order keys by their bytes, so a range or a scan goes by the order of
// the encoding. [String] and [Bytes] keep the order of Go's < and bytes.Compare.
// Java's integers do not: in [Int32] and [Int64] negative numbers lie above
// positive ones, and a range across zero is empty. [OrderedInt32] and
// [OrderedInt64] keep the order of the numbers, with bytes that are not Java's.
package serde

// Serde turns values of one type into bytes and back.
//
// One Serde is used by all workers of an application at once, so its methods
// must be safe for concurrent use. Equal values should give equal bytes; equal
// keys must.
type Serde[T any] interface {
	// Append appends the encoding of v to dst and returns the extended slice,
	// which is never nil when the error is nil. It keeps no reference to dst
	// nor, after it has returned, to v. With an error, the result is not to be
	// used; dst keeps its length and content.
	Append(dst []byte, v T) ([]byte, error)

	// Decode decodes data, which the callee must neither keep nor change: the
	// value must not share memory with it. data is never nil; it may be empty.
	// Data that is not an encoding of a T gives a [*DecodeError]. Null (absent)
	// values are handled above serdes.
	Decode(data []byte) (T, error)
}

// present returns b, or an empty non-nil slice when b is nil: nil stands for
// null in the layers above, and an encoded value is never null.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
