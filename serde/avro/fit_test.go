package avro_test

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/serde/avro"
)

func tryNew[T any](schema string) error {
	_, err := avro.New[T](schema)
	return err
}

func record(fieldType string) string {
	return `{"type":"record","name":"R","fields":[{"name":"F","type":` + fieldType + `}]}`
}

type (
	withInt64  struct{ F int64 }
	withStruct struct{ F withInt64 }
	withPtr    struct{ F *withInt64 }
	withRat    struct{ F big.Rat }
	withRatPtr struct{ F *big.Rat }
	withRatPP  struct{ F **big.Rat }
	withTime   struct{ F time.Time }
	withAddr   struct{ F netip.Addr }
	withAny    struct{ F any }
	withReader struct{ F io.Reader }
	embedding  struct{ *withInt64 }
	tagged     struct {
		Other int64 `avro:"F"`
	}
	empty struct{}
)

const (
	decimal  = `{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`
	inner    = `{"type":"record","name":"I","fields":[{"name":"F","type":"long"}]}`
	tree     = `{"type":"record","name":"T","fields":[{"name":"kids","type":{"type":"array","items":"T"}}]}`
	linkList = `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`
)

func TestUsableSchemas(t *testing.T) {
	t.Parallel()
	for i, err := range []error{
		tryNew[withInt64](record(`"long"`)),
		tryNew[*withInt64](record(`"long"`)),
		tryNew[tagged](record(`"long"`)),
		tryNew[embedding](record(`"long"`)),
		tryNew[empty](record(`"long"`)),
		tryNew[empty](record(linkList)),
		tryNew[map[string]any](record(`"long"`)),
		tryNew[withPtr](record(`["null",` + inner + `]`)),
		tryNew[withStruct](record(inner)),
		tryNew[withRatPtr](record(decimal)),
		tryNew[withRatPP](record(`["null",` + decimal + `]`)),
		tryNew[withTime](record(`{"type":"long","logicalType":"timestamp-micros"}`)),
		tryNew[withAddr](record(`"string"`)),
		tryNew[withAny](record(`["null","long",` + inner + `]`)),
	} {
		if err != nil {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestUnusableSchemas(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		err  error
		want string
	}{
		{tryNew[int64](`{"type":`), ""},
		{tryNew[int64](`"unheard-of"`), "unheard-of"},
		{tryNew[int64](`"string"`), "int64 cannot hold Avro string"},
		{tryNew[int32](`"long"`), "int32 cannot hold Avro long"},
		{tryNew[string](record(`"long"`)), "string cannot hold Avro record"},
		{tryNew[withInt64](record(`"string"`)), "F: int64 cannot hold Avro string"},
		{tryNew[[]int64](`{"type":"array","items":"string"}`), "int64 cannot hold Avro string"},
		{tryNew[[2]int64](`{"type":"array","items":"long"}`), "cannot hold Avro array"},
		{tryNew[map[string]string](`{"type":"map","values":"int"}`), "string cannot hold Avro int"},
		{tryNew[map[int]int32](`{"type":"map","values":"int"}`), "cannot hold Avro map"},
		{tryNew[map[netip.Addr]int32](`{"type":"map","values":"int"}`), "cannot hold Avro map"},
		{tryNew[[3]byte](`{"type":"fixed","name":"F","size":4}`), "cannot hold Avro fixed"},
		{tryNew[uint64](`{"type":"fixed","name":"F","size":8}`), "use [8]byte"},
		{tryNew[withInt64](record(`["null","long"]`)), "use a pointer"},
		{tryNew[string](`["string","long"]`), "FromAny"},
		{tryNew[withStruct](record(`["null",` + inner + `]`)), "use a pointer"},
		{tryNew[withTime](record(`["null",{"type":"long","logicalType":"timestamp-millis"}]`)), "use a pointer"},
		{tryNew[withRat](record(decimal)), "use *big.Rat"},
		{tryNew[withRatPtr](record(`["null",` + decimal + `]`)), "**big.Rat"},
		{tryNew[withReader](record(`"long"`)), "any"},
		{tryNew[empty](record(tree)), "must not be left out"},
	} {
		if !errors.Is(c.err, avro.ErrSchema) || !strings.Contains(fmt.Sprint(c.err), c.want) {
			t.Errorf("case %d: error %v, want %q", i, c.err, c.want)
		}
	}
}

func TestMustPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, avro.ErrSchema) {
			t.Errorf("Must panicked with %v", err)
		}
	}()
	avro.Must[int64](`"string"`)
}

// What fits also works: values pass through both ways.
func TestFittingTypesRoundTrip(t *testing.T) {
	t.Parallel()
	checkEncoding(t, record(`"string"`), withAddr{netip.MustParseAddr("::1")}, "06 3a3a31")
	checkEncoding(t, record(`"long"`), embedding{&withInt64{5}}, "0a")
	checkEncoding(t, record(`["null",`+inner+`]`), withPtr{&withInt64{5}}, "02 0a")
	rat := big.NewRat(5, 4)
	checkEncoding(t, record(`["null",`+decimal+`]`), withRatPP{&rat}, "02 02 7d")
	checkEncoding(t, record(`["null",`+decimal+`]`), withRatPP{}, "00")
	checkEncoding(t, record(`["null","long",`+inner+`]`), withAny{map[string]any{"long": int64(3)}}, "02 06")
	checkEncoding(t, record(`["null","long"]`), withAny{int64(3)}, "02 06")
}
