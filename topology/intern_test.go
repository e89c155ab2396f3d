package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/serde"
)

func TestInternedKeysAreTheKeys(t *testing.T) { // not parallel: it counts allocations
	s := intern(serde.String)
	keys := []string{"", "a", strings.Repeat("long", 100)}
	for i := range 5 * internSlots {
		keys = append(keys, fmt.Sprint(i))
	}
	buffer := make([]byte, 0, 400)
	for range 2 {
		for _, k := range keys {
			buffer = append(buffer[:0], k...)
			got, err := s.Decode(buffer)
			clear(buffer) // the string must not share it
			if got != k || err != nil {
				t.Fatalf("%q became %q, %v", k, got, err)
			}
		}
	}
	key := []byte("again")
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Decode(key) }); n != 0 {
		t.Errorf("a known key costs %v allocations", n)
	}
}

func TestOtherSerdesAreNotInterned(t *testing.T) {
	t.Parallel()
	if s := intern(serde.Int64); s != serde.Int64 {
		t.Errorf("int64 became %T", s)
	}
	own := serde.Func(func(dst []byte, s string) ([]byte, error) { return append(dst, s...), nil }, func(b []byte) (string, error) { return string(b), nil })
	if _, interned := intern(own).(*interner); interned {
		t.Error("a user's serde was replaced")
	}
}
