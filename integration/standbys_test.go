package integration

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
)

// A process tells what it stands by for and how much of it it lacks: all of it while its disk holds it up, then nothing,
// and nothing again when more was written. The process that works on the task stands by for nothing.
func TestStandbysAreTold(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Standbys = 1
	log := cfg.ApplicationID + "-counts-changelog"
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 100)...)
	owner := start(t, counting(t, in, out), cfg)
	owner.drain()

	held := &watched{task: "0_0", loads: make(chan *load)}
	cfg.Store, cfg.RestoreBytes, cfg.StateDir = held, 1, t.TempDir() // whatever is read is loaded at once
	other := start(t, counting(t, in, out), cfg)
	loading := <-held.loads
	_, end := logRange(t, log, 0)
	standsBy := func(lag bool) {
		t.Helper()
		other.eventually(func() (bool, string) {
			all := other.app.Standbys()
			if len(all) == 0 {
				return false, "none is told"
			}
			s := all[0]
			if len(all) > 1 || s.Task != (processor.TaskID{}) || s.Store != "counts" || s.Position > end || s.End > end || s.Lag() != s.End-s.Position {
				t.Fatalf("told %+v, the log ends at %d", all, end)
			}
			return s.End == end && (lag && s.Position == 0 || !lag && s.Position == end), fmt.Sprintf("told %+v, the log ends at %d", s, end)
		})
	}
	standsBy(true)
	close(loading.begin)
	go func() { // the others need not wait
		for l := range held.loads {
			close(l.begin)
		}
	}()
	standsBy(false)
	brokertest.Produce(t, cfg.Brokers, in, numbered(100, 100)...)
	owner.drain()
	before := end
	if _, end = logRange(t, log, 0); end <= before {
		t.Fatalf("the changelog ends at %d, before at %d", end, before)
	}
	standsBy(false)
	if all := owner.app.Standbys(); len(all) > 0 {
		t.Errorf("the owner stands by for %+v", all)
	}
	other.stop()
	close(held.loads)
	if all := other.app.Standbys(); len(all) > 0 {
		t.Errorf("stands by for %+v after its end", all)
	}
}
