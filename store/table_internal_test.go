package store

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/internal/seed"
)

// A table finds what was inserted and not removed, however hashes collide.
func TestTable(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range 200 {
		hashes := uint32(1 + rng.IntN(40)) // so few of them
		var table table
		var order []*Entry
		there := map[string]bool{}
		hash := func(key string) uint32 { return (hashOf([]byte(key)) % hashes) * 0x9E3779B1 }
		for range 300 {
			key := fmt.Sprint(rng.IntN(60))
			e := table.find(hash(key), []byte(key))
			if (e != nil) != there[key] || e != nil && e.Key != key {
				t.Fatalf("%s: found %v, there %v", key, e, there[key])
			}
			switch last := len(order) - 1; {
			case e == nil:
				e = &Entry{Key: key, hash: hash(key), place: int32(len(order))}
				order = append(order, e)
				table.insert(e)
				there[key] = true
			case rng.IntN(2) == 0: // the last one, as a rollback does
				table.remove(order[last])
				there[order[last].Key] = false
				order = order[:last]
			}
			if table.used != len(order) {
				t.Fatalf("%d used, %d there", table.used, len(order))
			}
		}
		table.reset()
		if e := table.find(hash("1"), []byte("1")); e != nil {
			t.Fatal("found after a reset")
		}
	}
}
