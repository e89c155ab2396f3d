package avro_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/serde/avro"
)

// zigzag returns the encodings of Avro longs, one after the other.
func zigzag(vs ...int64) string {
	var b []byte
	for _, v := range vs {
		b = binary.AppendVarint(b, v)
	}
	return string(b)
}

func refuse[T any](t *testing.T, schema, data string, want error) {
	t.Helper()
	s, err := avro.New[T](schema)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Decode([]byte(data))
	var de *serde.DecodeError
	if !errors.Is(err, want) || !errors.As(err, &de) || de.Len != len(data) {
		t.Errorf("%s: %.40q: error %v, want %v", schema, data, err, want)
	}
}

func TestMalformedData(t *testing.T) {
	t.Parallel()
	const (
		longs   = `{"type":"array","items":"long"}`
		nulls   = `{"type":"array","items":"null"}`
		longMap = `{"type":"map","values":"long"}`
		minimum = -1 << 63
	)
	refuse[bool](t, `"boolean"`, "\x02", avro.ErrMalformed)
	refuse[int32](t, `"int"`, "", io.ErrUnexpectedEOF)
	refuse[int32](t, `"int"`, "\x80", io.ErrUnexpectedEOF)
	refuse[int32](t, `"int"`, "\xff\xff\xff\xff\x1f", avro.ErrMalformed)
	refuse[int32](t, `"int"`, "\x80\x80\x80\x80\x80\x00", avro.ErrMalformed)
	refuse[int64](t, `"long"`, strings.Repeat("\xff", 9)+"\x02", avro.ErrMalformed)
	refuse[int64](t, `"long"`, strings.Repeat("\xff", 20), avro.ErrMalformed)
	refuse[float64](t, `"double"`, "1234567", io.ErrUnexpectedEOF)
	refuse[string](t, `"string"`, zigzag(4)+"abc", io.ErrUnexpectedEOF)
	refuse[string](t, `"string"`, zigzag(-1), avro.ErrMalformed)
	refuse[string](t, `"string"`, zigzag(1<<62)+"abc", io.ErrUnexpectedEOF)
	refuse[[]byte](t, `"bytes"`, zigzag(1<<62)+"abc", io.ErrUnexpectedEOF)
	refuse[[]byte](t, `"bytes"`, zigzag(minimum), avro.ErrMalformed)
	refuse[[]int64](t, longs, zigzag(1<<40, 1), io.ErrUnexpectedEOF)
	refuse[[]int64](t, longs, zigzag(-1<<40, 1, 1), io.ErrUnexpectedEOF)
	refuse[[]int64](t, longs, zigzag(minimum, 1, 1, 0), avro.ErrMalformed)
	refuse[[]int64](t, longs, zigzag(-1, 2, 5, 0), avro.ErrMalformed)
	refuse[[]int64](t, longs, zigzag(-1, -1, 5, 0), avro.ErrMalformed)
	refuse[[]int64](t, longs, zigzag(1, 5), io.ErrUnexpectedEOF)
	refuse[[]struct{}](t, nulls, zigzag(1<<40, 0), avro.ErrMalformed)
	refuse[[]struct{}](t, nulls, strings.Repeat(zigzag(60_000), 2)+zigzag(0), avro.ErrMalformed)
	refuse[map[string]int64](t, longMap, zigzag(1<<40, 0, 1), io.ErrUnexpectedEOF)
	refuse[map[string]int64](t, longMap, zigzag(1, -1, 1, 0), avro.ErrMalformed)
	refuse[*string](t, `["null","string"]`, zigzag(2), avro.ErrMalformed)
	refuse[*string](t, `["null","string"]`, zigzag(-1), avro.ErrMalformed)
	refuse[string](t, `{"type":"enum","name":"E","symbols":["A"]}`, zigzag(1), avro.ErrMalformed)
	refuse[[4]byte](t, `{"type":"fixed","name":"F","size":4}`, "abc", io.ErrUnexpectedEOF)
	refuse[int64](t, `"long"`, "\x00\x00", avro.ErrTrailing)
	refuse[struct{}](t, `"null"`, "\x00", avro.ErrTrailing)
	refuse[[]int64](t, longs, zigzag(0, 0), avro.ErrTrailing)
	refuse[struct{}](t, `{"type":"record","name":"R","fields":[{"name":"skipped","type":`+longs+`}]}`,
		zigzag(1<<62), io.ErrUnexpectedEOF)
}

type node struct {
	Next *node `avro:"next"`
}

func TestNesting(t *testing.T) {
	t.Parallel()
	const list = `{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}`
	refuse[node](t, list, strings.Repeat("\x02", 1<<20)+"\x00", avro.ErrMalformed)
	s := avro.Must[node](list)
	data := []byte(strings.Repeat("\x02", 4000) + "\x00")
	v, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Append(nil, v); err != nil || !bytes.Equal(again, data) {
		t.Errorf("a deep list did not round-trip: %v", err)
	}
	const endless = `{"type":"record","name":"N","fields":[{"name":"next","type":"N"}]}`
	refuse[node](t, endless, "", avro.ErrMalformed)
}

// What decoding refused data allocates has nothing to do with the lengths that
// the data states. Not parallel, because it reads the counters of the process.
func TestRefusingAllocatesLittle(t *testing.T) {
	s := avro.Must[Everything](everything)
	arrays := avro.Must[[]int64](`{"type":"array","items":"long"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := arrays.Decode([]byte(zigzag(1<<33, 1, 2, 3))); err == nil {
			t.Fatal("no error")
		}
		if _, err := s.Decode(append([]byte("\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), zigzag(1<<33)...)); err == nil {
			t.Fatal("no error")
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("refusing 200 short records allocated %d bytes", got)
	}
}

func FuzzDecode(f *testing.F) {
	s := avro.Must[Everything](everything)
	whole, err := s.Append(nil, sample())
	if err != nil {
		f.Fatal(err)
	}
	for cut := range whole {
		f.Add(whole[:cut])
	}
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), 0))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, data []byte) { checkDecode(t, s, data) })
}

func FuzzDecodeGeneric(f *testing.F) {
	s := avro.Must[any](`{"type":"record","name":"R","fields":[
		{"name":"m","type":{"type":"map","values":["null","long",{"type":"array","items":"bytes"}]}},
		{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"r","type":["null","R"]}]}`)
	for _, seed := range []string{
		"", "\x00\x00\x00", "\x02\x02k\x02\x06\x00\x02\x01\x00", "\x02\x02k\x04\x02\x02x\x00\x00\x02\x01\x00",
		"\x01\x06\x02k\x00\x00\x00\x00", "\x00\x00\x02\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := s.Decode(data); err != nil {
			checkRefusal(t, err, data)
		}
	})
}

// checkDecode checks that data is either refused or decodes to a value that
// round-trips.
func checkDecode[T any](t *testing.T, s serde.Serde[T], data []byte) {
	v, err := s.Decode(data)
	if err != nil {
		checkRefusal(t, err, data)
		return
	}
	out, err := s.Append(nil, v)
	if err != nil {
		t.Fatalf("Append(%+v): %v", v, err)
	}
	again, err := s.Decode(out)
	if err != nil {
		t.Fatal(err)
	}
	if out2, err := s.Append(nil, again); err != nil || !bytes.Equal(out, out2) {
		t.Fatalf("%x became %x, %v", out, out2, err)
	}
}

// checkRefusal checks that err comes from the scanner: data that it lets pass
// must be data that the library decodes.
func checkRefusal(t *testing.T, err error, data []byte) {
	var de *serde.DecodeError
	if !errors.As(err, &de) || de.Len != len(data) {
		t.Fatalf("untyped error %v", err)
	}
	if !errors.Is(err, avro.ErrMalformed) && !errors.Is(err, avro.ErrTrailing) {
		t.Fatalf("the scanner let %x pass: %v", data, err)
	}
}
