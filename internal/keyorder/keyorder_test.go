package keyorder_test

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/keyorder"
	"github.com/millrace-streams/millrace/internal/seed"
)

// The order by numbers is that of the bytes.
func TestOrder(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	key := func() []byte {
		k := []byte(strings.Repeat("p", rng.IntN(3)) + strings.Repeat("\x00", rng.IntN(12)))
		for range rng.IntN(14) {
			k = append(k, "\x00\x01a\xff"[rng.IntN(4)])
		}
		return k
	}
	for range 100_000 {
		a, b := key(), key()
		skip := keyorder.Common(a, b)
		if skip > 0 {
			skip = rng.IntN(skip + 1)
		}
		got := cmp.Compare(keyorder.Number(a, skip), keyorder.Number(b, skip))
		if got == 0 {
			got = keyorder.Compare(a, b, skip)
		}
		if want := bytes.Compare(a, b); got != want {
			t.Fatalf("%q, %q without the first %d: %d, want %d", a, b, skip, got, want)
		}
	}
}
