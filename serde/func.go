package serde

import (
	"fmt"
	"reflect"
)

// Func returns the serde made of two functions, which must do what the methods
// of [Serde] of the same name are documented to do. It adds two things: a nil
// result of appendTo becomes an empty slice, and an error of decode is wrapped
// in a [*DecodeError] unless it is one. Func panics if a function is nil.
func Func[T any](appendTo func(dst []byte, v T) ([]byte, error), decode func(data []byte) (T, error)) Serde[T] {
	if appendTo == nil || decode == nil {
		panic("serde: Func needs two functions")
	}
	return funcSerde[T]{name: reflect.TypeFor[T]().String(), appendTo: appendTo, decode: decode}
}

type funcSerde[T any] struct {
	name     string
	appendTo func([]byte, T) ([]byte, error)
	decode   func([]byte) (T, error)
}

func (s funcSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	out, err := s.appendTo(dst, v)
	if err != nil {
		return nil, fmt.Errorf("serde: cannot encode %s: %w", s.name, err)
	}
	return present(out), nil
}

func (s funcSerde[T]) Decode(data []byte) (T, error) {
	v, err := s.decode(data)
	if err != nil {
		var zero T
		return zero, decodeError(s.name, data, err)
	}
	return v, nil
}
