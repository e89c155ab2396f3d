// Package avro provides serdes for values in Avro's binary encoding.
//
// The encoding is that of one fixed schema, with no framing: no container
// header, no schema id and no fingerprint. Arrays and maps are written as one
// block without a byte count, like Java's default encoder does, so that the
// bytes equal those of Java's GenericDatumWriter; blocks of any form are read.
//
// Types are mapped by github.com/hamba/avro: a record to a struct (fields are
// matched by name or by the tag `avro:"name"`), int to int32, long to int64,
// float to float32, double to float64, string to string, bytes to []byte, an
// enum to string, fixed to an array of bytes, ["null", x] to a pointer, and
// other unions to map[string]any with the branch's name as its key, or to a type
// with FromAny and ToAny. Go integers narrower than the schema's are allowed but
// values are cut silently, as is a Go int written as an Avro int. A struct may
// leave out fields of the schema, to decode just a part of a record; Append then
// fails.
//
// Two cautions. Maps are written in random order, so equal values have different
// bytes; a schema with a map does not suit keys. And a Go value that contains itself through pointers
// overflows the stack when it is encoded, as with most encoders.
//
// Data is checked against the schema before it is decoded. Malformed or hostile
// data (cut short, lengths beyond the data, nesting without end, trailing
// bytes) gives an error: decoding neither panics nor allocates out of
// proportion to the size of the data.
package avro

import (
	"errors"
	"fmt"
	"reflect"

	hamba "github.com/hamba/avro/v2"

	"github.com/millrace-streams/millrace/serde"
)

// Causes of a [*serde.DecodeError], and of the failure of [New].
var (
	// ErrMalformed says that data is no datum of the schema: it is cut short,
	// holds a length, index or number out of range, or nests too deeply.
	ErrMalformed = errors.New("malformed datum")
	// ErrTrailing says that data holds a whole datum and more.
	ErrTrailing = errors.New("trailing bytes after the datum")
	// ErrSchema says that a schema is not valid or does not fit the Go type.
	ErrSchema = errors.New("unusable schema")
)

// New returns the serde of T for an Avro schema in JSON form. The schema must
// be complete in itself. New fails with [ErrSchema] if the schema is not valid
// or T cannot hold its data.
//
// The serde is safe for concurrent use. Decoded values share no memory with the
// data; appending to a decoded byte slice changes nothing else.
func New[T any](schema string) (serde.Serde[T], error) {
	typ := reflect.TypeFor[T]()
	parsed, err := parse(schema, typ)
	if err != nil {
		return nil, fmt.Errorf("avro: %w for %s: %w", ErrSchema, typ, err)
	}
	shape, err := compile(parsed, map[hamba.Schema]*shape{})
	if err != nil {
		return nil, fmt.Errorf("avro: %w for %s: %w", ErrSchema, typ, err)
	}
	return &codec[T]{name: "Avro " + typ.String(), schema: parsed, shape: shape, api: newConfig()}, nil
}

// Must is New for schemas that are constants of the program, as in
// package-level declarations: it panics where New returns an error.
func Must[T any](schema string) serde.Serde[T] {
	s, err := New[T](schema)
	if err != nil {
		panic(err)
	}
	return s
}

// parse parses the schema and checks that it fits typ. Schemas of other serdes
// are not visible to it: names are resolved in the schema alone.
func parse(schema string, typ reflect.Type) (parsed hamba.Schema, err error) {
	defer recoverInto(&err)
	parsed, err = hamba.ParseWithCache(schema, "", &hamba.SchemaCache{})
	if err != nil {
		return nil, err
	}
	return parsed, fits(parsed, typ)
}
