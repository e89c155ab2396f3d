package serde_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/millrace-streams/millrace/serde"
)

// fuzzSerde checks that data of any kind is either refused with a DecodeError
// or decoded to a value that encodes and decodes to itself; and, for encodings
// with one form only, that the bytes are the same again.
func fuzzSerde[T any](f *testing.F, s serde.Serde[T], oneForm func(T) bool) {
	for _, seed := range []string{
		"", "a", "null", "true", `{"id":1}`, `{"id":1,"attrs":{"k":"v"}}`, "\xff\xff\xff\xff",
		"\x00\x00\x00\x01", "\x7f\xf8\x00\x00\x00\x00\x00\x00", "\x7f\xf0\x00\x00\x00\x00\x00\x01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if data == nil {
			data = []byte{}
		}
		v, err := s.Decode(data)
		if err != nil {
			var de *serde.DecodeError
			if !errors.As(err, &de) || de.Len != len(data) || de.Err == nil {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		out, err := s.Append(nil, v)
		if err != nil || out == nil {
			t.Fatalf("Append(%v) = %v, %v", v, out, err)
		}
		if oneForm(v) && !bytes.Equal(out, data) {
			t.Fatalf("%x became %x", data, out)
		}
		again, err := s.Decode(out)
		if err != nil {
			t.Fatal(err)
		}
		if out2, err := s.Append(nil, again); err != nil || !bytes.Equal(out, out2) {
			t.Fatalf("%x became %x, %v", out, out2, err)
		}
	})
}

func always[T any](T) bool { return true }
func never[T any](T) bool  { return false }

func FuzzString(f *testing.F) { fuzzSerde(f, serde.String, always) }
func FuzzBytes(f *testing.F)  { fuzzSerde(f, serde.Bytes, always) }
func FuzzInt32(f *testing.F)  { fuzzSerde(f, serde.Int32, always) }
func FuzzInt64(f *testing.F)  { fuzzSerde(f, serde.Int64, always) }
func FuzzFloat64(f *testing.F) {
	fuzzSerde(f, serde.Float64, func(v float64) bool { return !math.IsNaN(v) })
}
func FuzzJSON(f *testing.F) { fuzzSerde(f, serde.JSON[order](), never) }
