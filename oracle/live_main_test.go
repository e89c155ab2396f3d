package oracle_test

import (
	"hash/fnv"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/store/bolt"
)

func TestLive(t *testing.T) {
	for file, list := range goldens(t) {
		t.Run(file, func(t *testing.T) {
			t0 := time.Now()
			h := fnv.New64()
			h.Write([]byte(file))
			f := newFlock(t, h.Sum64(), list, bolt.Opener{}, 1)
			f.run()
			t.Logf("%v %d scenarios %d lives %d dropped %d unseen %d emptied %d restored; %d rounds", time.Since(t0), f.tally.scenarios.Load(), f.tally.lives.Load(), f.tally.dropped.Load(), f.tally.unseen.Load(), f.tally.emptied.Load(), f.tally.restored.Load(), 0)
		})
	}
}
