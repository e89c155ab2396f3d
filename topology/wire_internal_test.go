package topology

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
)

// The bytes below were written by the serializers of Kafka Streams 4.2.0.

func sameBytesAs[T comparable](t *testing.T, s serde.Serde[T], v T, want string) {
	t.Helper()
	b, err := s.Append([]byte("before"), v)
	if got := strings.TrimPrefix(string(b), "before"); err != nil || hex.EncodeToString([]byte(got)) != want {
		t.Errorf("%+v: %x, %v, want %s", v, got, err, want)
	}
	data, _ := hex.DecodeString(want)
	if back, err := s.Decode(data); err != nil || back != v {
		t.Errorf("%s: %+v, %v, want %+v", want, back, err, v)
	}
	for i := range data { // what is cut off is refused, or decoded as something else, but never a panic
		_, _ = s.Decode(data[:i])
	}
}

func TestChangesOnTheWire(t *testing.T) {
	t.Parallel()
	s := changed[string]{serde.String}
	type change = processor.Change[string]
	sameBytesAs(t, s, change{Old: "old", HasOld: true}, "6f6c6400")
	sameBytesAs(t, s, change{New: "new", HasNew: true}, "6e657701")
	sameBytesAs(t, s, change{Old: "older", HasOld: true, New: "new", HasNew: true}, "066e65776f6c64657202")
	sameBytesAs(t, s, change{HasOld: true, HasNew: true}, "0002")
	sameBytesAs(t, s, change{HasOld: true, New: strings.Repeat("x", 100), HasNew: true}, "c801"+strings.Repeat("78", 100)+"02")
	for data, want := range map[string]change{
		"6f6c640103": {Old: "old", HasOld: true}, "6e65770004": {New: "new", HasNew: true},
		"066e65776f6c640105": {Old: "old", HasOld: true, New: "new", HasNew: true},
	} {
		b, _ := hex.DecodeString(data)
		if got, err := s.Decode(b); err != nil || got != want {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	if _, err := s.Append(nil, change{}); !errors.Is(err, errChanged) {
		t.Errorf("a change without values: %v", err)
	}
	for _, data := range []string{"", "\x06", "\x09xx\x02", "\x03ab\x02"} {
		if _, err := s.Decode([]byte(data)); !errors.Is(err, errChanged) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestForeignKeysOnTheWire(t *testing.T) {
	t.Parallel()
	hash := rowHash{murmur3([]byte("A1")), true}
	s := subscriptions[string]{serde.String}
	sameBytesAs(t, s, subscription[string]{unsubscribe, hash, "p1", 3}, "010044463afc8a9a7f494453388baa434425703100000003")
	sameBytesAs(t, s, subscription[string]{unsubscribeAnswered, hash, "p1", 3}, "010144463afc8a9a7f494453388baa434425703100000003")
	sameBytesAs(t, s, subscription[string]{subscribeAnswered, hash, "p1", 3}, "010244463afc8a9a7f494453388baa434425703100000003")
	sameBytesAs(t, s, subscription[string]{subscribe, hash, "p1", 3}, "010344463afc8a9a7f494453388baa434425703100000003")
	sameBytesAs(t, s, subscription[string]{unsubscribeAnswered, rowHash{}, "p1", 258}, "8101703100000102")
	sameBytesAs(t, s, subscription[string]{subscribe, hash, "p1", -1}, "000344463afc8a9a7f494453388baa4344257031")

	r := responses[string]{serde.String}
	sameBytesAs(t, r, response[string]{hash: hash, value: "ra", exists: true}, "0044463afc8a9a7f494453388baa4344257261")
	sameBytesAs(t, r, response[string]{hash: hash}, "0044463afc8a9a7f494453388baa434425")
	sameBytesAs(t, r, response[string]{value: "ra", exists: true}, "807261")
	sameBytesAs(t, r, response[string]{exists: true}, "c0") // Millrace's own: an empty value

	sameBytesAs(t, combinedKeys[string, string]{serde.String, serde.String}, combined[string, string]{"A", "p1"}, "00000001417031")

	for _, data := range []string{"", "\x01", "\x02\x00", "\x01\x04", "\x00\x00short", "\x81\x00abc"} {
		if _, err := s.Decode([]byte(data)); !errors.Is(err, errForeign) {
			t.Errorf("subscription %q: %v", data, err)
		}
	}
	for _, data := range []string{"", "\x01", "\x00short"} {
		if _, err := r.Decode([]byte(data)); !errors.Is(err, errForeign) {
			t.Errorf("response %q: %v", data, err)
		}
	}
	for _, data := range []string{"", "\x00\x00\x00\x05ab"} {
		if _, err := (combinedKeys[string, string]{serde.String, serde.String}).Decode([]byte(data)); !errors.Is(err, errForeign) {
			t.Errorf("combined key %q: %v", data, err)
		}
	}
}

func TestMurmur3IsKafkaStreams(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"": "9d2764a018e329428c3cf3b035938518", "a": "3361634e7e0f5188e9c7dda24eae326b",
		"abcdefgh": "c9e137e204bd98d798412524f285c8d5", "abcdefghi": "4be3491e5ef44ca37e63ebba6e3b347c",
		"0123456789abcde": "c480e6b5c0016979a0d033624a7f7904", "0123456789abcdef": "1a6e941ec6a76967d7d82808f505d6b1",
		"The quick brown fox jumps over the lazy dog": "e74c5921af0f99c8b7f85ec81df06726",
		"éÿ中": "531589b744959b4487e3afcf331ba145",
	} {
		if got := murmur3([]byte(data)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q: %x, want %s", data, got, want)
		}
	}
}
