package runtime_test

import (
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// What a standby has on disk is as old as the latest batch that brought its changelog to the end, not as the latest write:
// a standby that lags may have missed what was deleted long ago.
func TestAStandbyIsAsOldAsTheEndItHasSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more bool // lies behind the second batch
		away time.Duration
		end  int64
		from int64 // where the next life begins
	}{
		"at the end, young":           {away: 59 * time.Minute, end: 100, from: 20},
		"at the end, old":             {away: 61 * time.Minute, end: 100, from: 0},
		"lags":                        {more: true, away: 59 * time.Minute, end: 100, from: 0},
		"old, and lacks a marker":     {away: 1000 * time.Hour, end: 21, from: 20},
		"it lags, and lacks a marker": {more: true, away: 1000 * time.Hour, end: 21, from: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, files, 1, 1<<20)
			w.open(lease(runtime.Standby, 0, 20, "counts"))
			w.turn(fetched("counts", 0, 0, 10))
			w.work()
			w.now = w.now.Add(50 * time.Minute)
			e := fetched("counts", 0, 10, 10)
			e.Fetched[0].More = test.more
			w.turn(e)
			w.work()
			w.now = w.now.Add(5 * time.Minute) // a flush is due
			w.turn(runtime.Events{})
			w.work()
			w.turn(runtime.Events{Revoked: []processor.TaskID{taskOf(0)}})
			w.now = w.now.Add(test.away - 5*time.Minute)
			w.open(lease(runtime.Standby, 0, test.end, "counts"))
			if at := w.port.fetching[logOf("counts", 0)]; at != test.from || len(w.port.closed) != 1 {
				t.Errorf("goes on from %d, closed %d times: want it from %d", at, len(w.port.closed), test.from)
			}
		})
	}
}
