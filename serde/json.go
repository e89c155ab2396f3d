package serde

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// JSON returns the serde of T as JSON text, by the rules and struct tags of
// encoding/json: map keys are sorted, struct fields come in the order of
// declaration, and unknown fields are ignored on decode. The characters <, >
// and & are written as they are, and no newline is added.
//
// Decode wants exactly one JSON text. Empty data is an error; the text null
// is not, it leaves T at its zero value. A nil pointer, slice or map encodes as
// the text null, which is a value of four bytes and no tombstone.
func JSON[T any]() Serde[T] {
	return jsonSerde[T]{name: reflect.TypeFor[T]().String()}
}

type jsonSerde[T any] struct{ name string }

func (s jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	out := sink{buf: dst}
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("serde: cannot encode %s as JSON: %w", s.name, err)
	}
	// The encoder ends every text with a newline, for streams of texts.
	return bytes.TrimSuffix(out.buf, []byte{'\n'}), nil
}

func (s jsonSerde[T]) Decode(data []byte) (T, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		var zero T
		return zero, decodeError("JSON "+s.name, data, err)
	}
	return v, nil
}

// sink appends what is written to it to buf.
type sink struct{ buf []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}
