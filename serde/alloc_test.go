package serde_test

import (
	"testing"

	"github.com/millrace-streams/millrace/serde"
)

// Results kept, so that the compiler cannot leave the work out.
var (
	keptBytes  []byte
	keptString string
	keptInt    int64
)

func checkAllocs(t *testing.T, what string, want float64, f func()) {
	t.Helper()
	if got := testing.AllocsPerRun(200, f); got > want {
		t.Errorf("%s: %v allocations, want at most %v", what, got, want)
	}
}

// No t.Parallel: AllocsPerRun counts the allocations of the whole process.
func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 256)
	text := []byte("a text that is longer than any small-string shortcut")
	number := make([]byte, 8)
	checkAllocs(t, "String.Append", 0, func() { keptBytes, _ = serde.String.Append(buf, "some text") })
	checkAllocs(t, "String.Append(nil, empty)", 0, func() { keptBytes, _ = serde.String.Append(nil, "") })
	checkAllocs(t, "String.Decode", 1, func() { keptString, _ = serde.String.Decode(text) })
	checkAllocs(t, "Bytes.Append", 0, func() { keptBytes, _ = serde.Bytes.Append(buf, text) })
	checkAllocs(t, "Bytes.Decode", 1, func() { keptBytes, _ = serde.Bytes.Decode(text) })
	checkAllocs(t, "Int64.Append", 0, func() { keptBytes, _ = serde.Int64.Append(buf, 1<<40) })
	checkAllocs(t, "Int64.Decode", 0, func() { keptInt, _ = serde.Int64.Decode(number) })
	checkAllocs(t, "Float64.Append", 0, func() { keptBytes, _ = serde.Float64.Append(buf, 0.5) })
}

func benchmark[T any](b *testing.B, name string, s serde.Serde[T], v T) {
	data, err := s.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(name+"/append", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(data)+64)
		for b.Loop() {
			if _, err := s.Append(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run(name+"/decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSerde(b *testing.B) {
	benchmark(b, "string", serde.String, "a word of some length")
	benchmark(b, "bytes", serde.Bytes, []byte("a word of some length"))
	benchmark(b, "int32", serde.Int32, 42)
	benchmark(b, "int64", serde.Int64, 42)
	benchmark(b, "float64", serde.Float64, 42)
	benchmark(b, "json", serde.JSON[order](), order{ID: 42, Note: "a word of some length"})
}
