package avro_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/seed"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/serde/avro"
)

// everything has a field of each kind of schema.
const everything = `{"type":"record","name":"Everything","fields":[
	{"name":"flag","type":"boolean"},
	{"name":"count","type":"int"},
	{"name":"total","type":"long"},
	{"name":"ratio","type":"float"},
	{"name":"price","type":"double"},
	{"name":"raw","type":"bytes"},
	{"name":"name","type":"string"},
	{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID","SENT"]}},
	{"name":"id","type":{"type":"fixed","name":"ID","size":4}},
	{"name":"mark","type":{"type":"fixed","name":"Mark","size":8}},
	{"name":"tags","type":{"type":"array","items":"string"}},
	{"name":"note","type":["null","string"]},
	{"name":"blob","type":["null","bytes"]},
	{"name":"next","type":["null","Everything"]},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

type Everything struct {
	Flag  bool        `avro:"flag"`
	Count int32       `avro:"count"`
	Total int64       `avro:"total"`
	Ratio float32     `avro:"ratio"`
	Price float64     `avro:"price"`
	Raw   []byte      `avro:"raw"`
	Name  string      `avro:"name"`
	State string      `avro:"state"`
	ID    [4]byte     `avro:"id"`
	Mark  [8]byte     `avro:"mark"`
	Tags  []string    `avro:"tags"`
	Note  *string     `avro:"note"`
	Blob  []byte      `avro:"blob"`
	Next  *Everything `avro:"next"`
	At    time.Time   `avro:"at"`
}

func sample() Everything {
	note := "n"
	return Everything{
		Flag: true, Count: -1, Total: 300, Ratio: 1, Price: -2, Raw: []byte{1, 2}, Name: "hé",
		State: "SENT", ID: [4]byte{9, 8, 7, 6}, Mark: [8]byte{6: 1, 7: 2}, Tags: []string{"a", ""}, Note: &note,
		At: time.UnixMilli(1).UTC(),
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkEncoding[T any](t *testing.T, schema string, v T, wantHex string) {
	t.Helper()
	s, err := avro.New[T](schema)
	if err != nil {
		t.Fatal(err)
	}
	want := unhex(t, wantHex)
	got, err := s.Append(nil, v)
	if err != nil || got == nil || !bytes.Equal(got, want) {
		t.Errorf("%s: Append(nil, %v) = %x, %v; want %x", schema, v, got, err, want)
	}
	if got, err = s.Append([]byte("p"), v); err != nil || string(got) != "p"+string(want) {
		t.Errorf("%s: Append after a prefix = %x, %v", schema, got, err)
	}
	if back, err := s.Decode(want); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%s: Decode(%x) = %#v, %v; want %#v", schema, want, back, err, v)
	}
}

// The bytes are those of Java's GenericDatumWriter with its default encoder,
// written out by hand from the Avro specification.
func TestJavaEncodings(t *testing.T) {
	t.Parallel()
	checkEncoding(t, `"boolean"`, true, "01")
	checkEncoding(t, `"int"`, int32(-64), "7f")
	checkEncoding(t, `"int"`, int32(math.MinInt32), "ffffffff0f")
	checkEncoding(t, `"long"`, int64(64), "8001")
	checkEncoding(t, `"long"`, int64(math.MaxInt64), "feffffffffffffffff01")
	checkEncoding(t, `"long"`, int64(math.MinInt64), "ffffffffffffffffff01")
	checkEncoding(t, `"float"`, float32(1), "0000803f")
	checkEncoding(t, `"double"`, -2.0, "00000000000000c0")
	checkEncoding(t, `"string"`, "foo", "06666f6f")
	checkEncoding(t, `"string"`, "", "00")
	checkEncoding(t, `"bytes"`, []byte{}, "00")
	checkEncoding(t, `"bytes"`, []byte{0, 255}, "0400ff")
	checkEncoding(t, `"null"`, struct{}{}, "")
	checkEncoding(t, `{"type":"enum","name":"E","symbols":["A","B"]}`, "B", "02")
	checkEncoding(t, `{"type":"fixed","name":"F","size":2}`, [2]byte{1, 2}, "0102")
	checkEncoding(t, `{"type":"array","items":"long"}`, []int64{3, 27}, "04 06 36 00")
	checkEncoding(t, `{"type":"array","items":"long"}`, []int64{}, "00")
	checkEncoding(t, `{"type":"map","values":"int"}`, map[string]int32{"a": 1}, "02 0261 02 00")
	checkEncoding(t, `["null","long"]`, (*int64)(nil), "00")
	checkEncoding(t, `["long","null"]`, new(int64), "00 00")
	checkEncoding(t, `["null","string","long"]`, map[string]any{"long": int64(5)}, "04 0a")
	checkEncoding(t, `{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, big.NewRat(-5, 4), "0283")
	checkEncoding(t, everything, sample(), "01 01 d804 0000803f 00000000000000c0 04 0102 06 68c3a9 04 09080706 "+
		"0000000000000102 04 0261 00 00 02026e 00 00 02")
	type test struct {
		A int64  `avro:"a"`
		B string `avro:"b"`
	}
	rec := `{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}`
	checkEncoding(t, rec, test{27, "foo"}, "36 06666f6f")
	checkEncoding(t, rec, &test{27, "foo"}, "36 06666f6f")
	checkEncoding[any](t, rec, map[string]any{"a": int64(27), "b": "foo"}, "36 06666f6f")
}

// More items than the library's default block length still make one block.
func TestLongArrayIsOneBlock(t *testing.T) {
	t.Parallel()
	items := make([]int64, 1000)
	want := append([]byte{0xd0, 0x0f}, make([]byte, 1001)...)
	checkEncoding(t, `{"type":"array","items":"long"}`, items, hex.EncodeToString(want))
}

// Values far beyond the read-ahead.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	checkEncoding(t, `"string"`, large, hex.EncodeToString([]byte(zigzag(3<<20)+large)))
	checkEncoding(t, `"bytes"`, []byte(large), hex.EncodeToString([]byte(zigzag(3<<20)+large)))
	s := avro.Must[string](`"string"`)
	for _, v := range []string{large, "small", large, ""} {
		data, err := s.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.Decode(data); err != nil || back != v {
			t.Fatalf("%d bytes did not round-trip: %v", len(v), err)
		}
	}
}

func TestReadsAllBlockForms(t *testing.T) {
	t.Parallel()
	s := avro.Must[[]int64](`{"type":"array","items":"long"}`)
	for _, data := range []string{
		"04 06 36 00",       // one block
		"02 06 02 36 00",    // two blocks
		"03 04 06 36 00",    // one block with its size in bytes
		"02 06 01 02 36 00", // one of each
	} {
		if v, err := s.Decode(unhex(t, data)); err != nil || !reflect.DeepEqual(v, []int64{3, 27}) {
			t.Errorf("Decode(%s) = %v, %v", data, v, err)
		}
	}
}

func TestSubsetOfFieldsDecodes(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string    `avro:"name"`
		At   time.Time `avro:"at"`
	}
	data, err := avro.Must[Everything](everything).Append(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	s := avro.Must[part](everything)
	v, err := s.Decode(data)
	if err != nil || v.Name != "hé" || !v.At.Equal(time.UnixMilli(1)) {
		t.Errorf("Decode = %+v, %v", v, err)
	}
	if _, err := s.Append(nil, v); err == nil {
		t.Error("Append wrote a record with fields missing")
	}
}

func TestAppendErrors(t *testing.T) {
	t.Parallel()
	enum := avro.Must[string](`{"type":"enum","name":"E","symbols":["A"]}`)
	dst := []byte("kept")
	if _, err := enum.Append(dst, "Z"); err == nil || string(dst) != "kept" {
		t.Errorf("unknown symbol: %v, dst %q", err, dst)
	}
	if b, err := enum.Append(nil, "A"); err != nil || !bytes.Equal(b, []byte{0}) {
		t.Errorf("after an error: %x, %v", b, err)
	}
	if _, err := avro.Must[*Everything](everything).Append(nil, nil); err == nil {
		t.Error("nil record: no error")
	}
	decimal := avro.Must[*big.Rat](`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`)
	if _, err := decimal.Append(nil, nil); err == nil || !strings.Contains(err.Error(), "panic in codec") {
		t.Errorf("nil decimal: %v", err)
	}
}

// Appending to a decoded byte slice must not write over other decoded values.
func TestDecodedSlicesAreApart(t *testing.T) {
	t.Parallel()
	type pair struct {
		A []byte   `avro:"a"`
		B string   `avro:"b"`
		C [][]byte `avro:"c"`
		D []byte   `avro:"d"`
	}
	s := avro.Must[pair](`{"type":"record","name":"P","fields":[{"name":"a","type":"bytes"},{"name":"b","type":"string"},
		{"name":"c","type":{"type":"array","items":"bytes"}},{"name":"d","type":["null","bytes"]}]}`)
	in := pair{A: []byte("aaa"), B: "bbb", C: [][]byte{[]byte("c1"), []byte("c2")}, D: []byte("ddd")}
	data, err := s.Append(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'X'
	}
	for _, b := range [][]byte{v.A, v.C[0], v.C[1], v.D} {
		_ = append(b, "overwritten"...)
	}
	if !reflect.DeepEqual(v, in) || !reflect.DeepEqual(w, in) {
		t.Errorf("values changed: %q %q", v, w)
	}
}

// The serde is shared by all workers; run with -race.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := avro.Must[Everything](everything)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			in := sample()
			for i := range 200 {
				in.Mark[0], in.Total = byte(g), int64(i)
				data, err := s.Append(nil, in)
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := s.Decode(data); err != nil || !reflect.DeepEqual(in, out) {
					t.Errorf("%+v became %+v, %v", in, out, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Two schemas may use one name for different records.
func TestSchemasAreApart(t *testing.T) {
	t.Parallel()
	type a struct{ X int64 }
	type b struct{ X string }
	checkEncoding(t, `{"type":"record","name":"R","fields":[{"name":"X","type":"long"}]}`, a{1}, "02")
	checkEncoding(t, `{"type":"record","name":"R","fields":[{"name":"X","type":"string"}]}`, b{"x"}, "0278")
	if _, err := avro.New[a](`{"type":"array","items":"R"}`); !errors.Is(err, avro.ErrSchema) {
		t.Errorf("a name of another schema was found: %v", err)
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// randomEverything makes values of all sizes up to some times the read-ahead.
func randomEverything(r *rand.Rand, depth int) Everything {
	e := Everything{
		Flag: r.IntN(2) == 0, Count: int32(r.Uint32()), Total: int64(r.Uint64()) >> r.IntN(64),
		Ratio: r.Float32(), Price: r.NormFloat64(), Raw: randomBytes(r, r.IntN(1<<r.IntN(13))),
		Name: string(randomBytes(r, r.IntN(1<<r.IntN(13)))), State: []string{"NEW", "PAID", "SENT"}[r.IntN(3)],
		ID: [4]byte(randomBytes(r, 4)), Mark: [8]byte(randomBytes(r, 8)), Tags: []string{}, At: time.UnixMilli(r.Int64N(1 << 41)).UTC(),
	}
	for range r.IntN(5) {
		e.Tags = append(e.Tags, string(randomBytes(r, r.IntN(30))))
	}
	if r.IntN(2) == 0 {
		note := string(randomBytes(r, r.IntN(10)))
		e.Note = &note
		e.Blob = randomBytes(r, r.IntN(2000))
	}
	if depth > 0 && r.IntN(3) > 0 {
		next := randomEverything(r, depth-1)
		e.Next = &next
	}
	return e
}

func TestRandomRoundTrips(t *testing.T) {
	t.Parallel()
	r := seed.Rand(t)
	s := avro.Must[Everything](everything)
	for range 300 {
		in := randomEverything(r, 3)
		data, err := s.Append(nil, in)
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(data)
		if out, err := s.Decode(data); err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("%+v became %+v, %v", in, out, err)
		}
		if !bytes.Equal(before, data) {
			t.Fatal("Decode changed its data")
		}
		if _, err := s.Decode(data[:r.IntN(len(data))]); !errors.Is(err, avro.ErrMalformed) {
			t.Fatalf("datum cut short: %v", err)
		}
	}
}

var _ serde.Serde[Everything] = avro.Must[Everything](everything)
