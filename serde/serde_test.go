package serde_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/serde"
)

// encodingCase is a value and the bytes that the Java serializer writes for it.
type encodingCase[T any] struct {
	value T
	hex   string
}

// checkEncodings checks both directions of every case, after a prefix and after
// nothing at all.
func checkEncodings[T any](t *testing.T, s serde.Serde[T], same func(a, b T) bool, cases []encodingCase[T]) {
	t.Helper()
	for _, c := range cases {
		want, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Append(nil, c.value)
		if err != nil || got == nil || !bytes.Equal(got, want) {
			t.Errorf("Append(nil, %v) = %x (nil: %t), %v; want %x", c.value, got, got == nil, err, want)
		}
		prefixed, err := s.Append([]byte("prefix"), c.value)
		if err != nil || string(prefixed) != "prefix"+string(want) {
			t.Errorf("Append(prefix, %v) = %q, %v", c.value, prefixed, err)
		}
		back, err := s.Decode(want)
		if err != nil || !same(back, c.value) {
			t.Errorf("Decode(%x) = %v, %v; want %v", want, back, err, c.value)
		}
	}
}

func equal[T comparable](a, b T) bool { return a == b }

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func TestJavaEncodings(t *testing.T) {
	t.Parallel()
	checkEncodings(t, serde.String, equal[string], []encodingCase[string]{
		{"", ""},
		{"kafka", "6b61666b61"},
		{"a\x00b", "610062"},
		{"Zürich", "5ac3bc72696368"},
		{"水車", "e6b0b4e8bb8a"},
		{"😀", "f09f9880"},
		{"\xff\xfe", "fffe"},
	})
	checkEncodings(t, serde.Bytes, bytes.Equal, []encodingCase[[]byte]{
		{[]byte{}, ""},
		{[]byte{0, 255}, "00ff"},
	})
	checkEncodings(t, serde.Int32, equal[int32], []encodingCase[int32]{
		{0, "00000000"},
		{1, "00000001"},
		{-1, "ffffffff"},
		{0x12345678, "12345678"},
		{math.MaxInt32, "7fffffff"},
		{math.MinInt32, "80000000"},
	})
	checkEncodings(t, serde.Int64, equal[int64], []encodingCase[int64]{
		{0, "0000000000000000"},
		{1, "0000000000000001"},
		{-2, "fffffffffffffffe"},
		{0x0123456789abcdef, "0123456789abcdef"},
		{math.MaxInt64, "7fffffffffffffff"},
		{math.MinInt64, "8000000000000000"},
	})
	checkEncodings(t, serde.Float64, sameFloat, []encodingCase[float64]{
		{0, "0000000000000000"},
		{math.Copysign(0, -1), "8000000000000000"},
		{1, "3ff0000000000000"},
		{-2.5, "c004000000000000"},
		{math.Pi, "400921fb54442d18"},
		{math.MaxFloat64, "7fefffffffffffff"},
		{math.SmallestNonzeroFloat64, "0000000000000001"},
		{math.Inf(1), "7ff0000000000000"},
		{math.Inf(-1), "fff0000000000000"},
		{math.NaN(), "7ff8000000000000"},
		{math.Float64frombits(0xfff0000000000001), "7ff8000000000000"},
	})
}

func checkWrongLength[T comparable](t *testing.T, s serde.Serde[T], typ string, want int) {
	t.Helper()
	for n := range 2*want + 1 {
		v, err := s.Decode(make([]byte, n))
		if n == want {
			if err != nil {
				t.Errorf("%s: %d bytes: %v", typ, n, err)
			}
			continue
		}
		var de *serde.DecodeError
		var zero T
		if !errors.Is(err, serde.ErrLength) || !errors.As(err, &de) || de.Type != typ || de.Len != n || v != zero {
			t.Errorf("%s: %d bytes: %v, %v", typ, n, v, err)
		}
	}
}

func TestWrongLength(t *testing.T) {
	t.Parallel()
	checkWrongLength(t, serde.Int32, "int32", 4)
	checkWrongLength(t, serde.Int64, "int64", 8)
	checkWrongLength(t, serde.Float64, "float64", 8)
	_, err := serde.Int64.Decode([]byte("123"))
	if got, want := err.Error(), "serde: cannot decode 3 bytes as int64: wrong length, want 8"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestEmptyIsNotNull(t *testing.T) {
	t.Parallel()
	if b, err := serde.String.Append(nil, ""); b == nil || len(b) != 0 || err != nil {
		t.Errorf("String: %v, %v", b, err)
	}
	for _, v := range [][]byte{nil, {}} {
		if b, err := serde.Bytes.Append(nil, v); b == nil || len(b) != 0 || err != nil {
			t.Errorf("Bytes: %v, %v", b, err)
		}
	}
	if b, err := serde.Bytes.Decode([]byte{}); b == nil || len(b) != 0 || err != nil {
		t.Errorf("Bytes: %v, %v", b, err)
	}
	nothing := serde.Func(
		func(dst []byte, _ struct{}) ([]byte, error) { return dst, nil },
		func([]byte) (struct{}, error) { return struct{}{}, nil })
	if b, err := nothing.Append(nil, struct{}{}); b == nil || err != nil {
		t.Errorf("Func: %v, %v", b, err)
	}
}

func TestDecodedValuesAreCopies(t *testing.T) {
	t.Parallel()
	data := []byte("shared")
	text, _ := serde.String.Decode(data)
	raw, _ := serde.Bytes.Decode(data)
	copy(data, "------")
	if text != "shared" || string(raw) != "shared" {
		t.Errorf("decoded values changed with the data: %q %q", text, raw)
	}
}

type order struct {
	ID    int64             `json:"id"`
	Note  string            `json:"note,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
}

func TestJSON(t *testing.T) {
	t.Parallel()
	same := func(a, b order) bool { return a.ID == b.ID && a.Note == b.Note && len(a.Attrs) == len(b.Attrs) }
	quote := func(s string) string { return hex.EncodeToString([]byte(s)) }
	checkEncodings(t, serde.JSON[order](), same, []encodingCase[order]{
		{order{}, quote(`{"id":0}`)},
		{order{ID: 7, Note: "a<b & c>d"}, quote(`{"id":7,"note":"a<b & c>d"}`)},
		{order{Attrs: map[string]string{"z": "1", "a": "2"}}, quote(`{"id":0,"attrs":{"a":"2","z":"1"}}`)},
	})
	for _, bad := range []string{"", "{", `{"id":"x"}`, `{"id":1} {}`, "nul"} {
		v, err := serde.JSON[order]().Decode([]byte(bad))
		var de *serde.DecodeError
		if !errors.As(err, &de) || de.Len != len(bad) || de.Type != "JSON serde_test.order" || v.ID != 0 {
			t.Errorf("Decode(%q) = %v, %v", bad, v, err)
		}
	}
	if b, err := serde.JSON[*order]().Append(nil, nil); string(b) != "null" || err != nil {
		t.Errorf("nil pointer: %q, %v", b, err)
	}
	dst := []byte("kept")
	if _, err := serde.JSON[float64]().Append(dst, math.NaN()); err == nil || string(dst) != "kept" {
		t.Errorf("NaN: %v, dst %q", err, dst)
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd length")
	inner := &serde.DecodeError{Type: "inner", Len: 3, Err: odd}
	s := serde.Func(
		func(dst []byte, v string) ([]byte, error) {
			if v == "" {
				return nil, io.ErrShortWrite
			}
			return append(dst, v...), nil
		},
		func(data []byte) (string, error) {
			switch len(data) {
			case 1:
				return "partial", odd
			case 3:
				return "", inner
			}
			return string(data), nil
		})
	if b, err := s.Append([]byte("a"), "bc"); string(b) != "abc" || err != nil {
		t.Errorf("Append: %q, %v", b, err)
	}
	if _, err := s.Append(nil, ""); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Append error: %v", err)
	}
	var de *serde.DecodeError
	if v, err := s.Decode([]byte("x")); !errors.As(err, &de) || de.Type != "string" || !errors.Is(err, odd) || v != "" {
		t.Errorf("Decode: %q, %v", v, err)
	}
	if _, err := s.Decode([]byte("xyz")); err != error(inner) {
		t.Errorf("an error that is a DecodeError was wrapped: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Func(nil, nil) did not panic")
		}
	}()
	serde.Func[int](nil, nil)
}

func roundTrip[T any](t *testing.T, s serde.Serde[T], same func(a, b T) bool, v T) {
	t.Helper()
	data, err := s.Append(nil, v)
	if err != nil || data == nil {
		t.Fatalf("Append(%v) = %v, %v", v, data, err)
	}
	before := bytes.Clone(data)
	back, err := s.Decode(data)
	if err != nil || !same(back, v) {
		t.Fatalf("%v became %v, %v", v, back, err)
	}
	if !bytes.Equal(data, before) {
		t.Fatalf("Decode changed its data")
	}
}

func TestRandomRoundTrips(t *testing.T) {
	t.Parallel()
	r := seed.Rand(t)
	for range 2000 {
		raw := make([]byte, r.IntN(40))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		roundTrip(t, serde.String, equal, string(raw))
		roundTrip(t, serde.Bytes, bytes.Equal, raw)
		roundTrip(t, serde.Int32, equal, int32(r.Uint32()))
		roundTrip(t, serde.Int64, equal, int64(r.Uint64()))
		roundTrip(t, serde.Float64, sameFloat, math.Float64frombits(r.Uint64()))
		roundTrip(t, serde.JSON[int64](), equal, int64(r.Uint64()))
	}
}
