package avro_test

import (
	"testing"

	"github.com/millrace-streams/millrace/serde/avro"
)

func BenchmarkAppend(b *testing.B) {
	s, v := avro.Must[Everything](everything), sample()
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(buf, v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	s := avro.Must[Everything](everything)
	data, err := s.Append(nil, sample())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := s.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
