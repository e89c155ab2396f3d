package serde_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-streams/millrace/serde"
)

func TestOrderedIntegers(t *testing.T) {
	t.Parallel()
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt32, -256, -255, -2, -1, 0, 1, 2, 255, 256, math.MaxInt32, math.MaxInt64}
	for range 200 {
		numbers = append(numbers, int64(rand.Uint64()))
	}
	for _, a := range numbers {
		for _, b := range numbers {
			inOrder(t, serde.OrderedInt64, a, b, a < b)
			inOrder(t, serde.OrderedInt32, int32(a), int32(b), int32(a) < int32(b))
		}
	}
	for _, err := range []error{wrong(serde.OrderedInt64, 7), wrong(serde.OrderedInt64, 0), wrong(serde.OrderedInt32, 8)} {
		if !errors.Is(err, serde.ErrLength) {
			t.Errorf("got %v", err)
		}
	}
}

func inOrder[T comparable](t *testing.T, s serde.Serde[T], a, b T, less bool) {
	t.Helper()
	x, _ := s.Append(nil, a)
	y, _ := s.Append(nil, b)
	if back, err := s.Decode(x); back != a || err != nil {
		t.Fatalf("%v came back as %v, %v", a, back, err)
	}
	if (bytes.Compare(x, y) < 0) != less {
		t.Fatalf("%v and %v are %x and %x", a, b, x, y)
	}
}

func wrong[T any](s serde.Serde[T], length int) error {
	_, err := s.Decode(make([]byte, length))
	return err
}
