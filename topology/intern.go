package topology

import (
	"hash/maphash"

	"github.com/millrace-streams/millrace/serde"
)

// The interner's table, and the longest key that is looked up in it.
const (
	internSlots  = 1024
	internLength = 64
)

// interner decodes strings as serde.String does, but returns a string that it made before where it can: keys repeat. It
// belongs to one task.
type interner struct {
	seed  maphash.Seed
	table [internSlots]string
}

// intern returns a serde that does what keys does, for one task.
func intern[K any](keys serde.Serde[K]) serde.Serde[K] {
	if any(keys) != any(serde.String) {
		return keys
	}
	return any(&interner{seed: maphash.MakeSeed()}).(serde.Serde[K])
}

// Append implements serde.Serde.
func (*interner) Append(dst []byte, s string) ([]byte, error) { return serde.String.Append(dst, s) }

// Decode implements serde.Serde.
func (i *interner) Decode(data []byte) (string, error) {
	if len(data) > internLength {
		return serde.String.Decode(data)
	}
	slot := &i.table[maphash.Bytes(i.seed, data)%internSlots]
	if *slot != string(data) {
		*slot = string(data)
	}
	return *slot, nil
}
