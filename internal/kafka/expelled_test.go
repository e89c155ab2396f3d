package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// TestJoinIsNeverAnswered: a member that waits in vain for the answer to a join is thrown out by the group. It learns of it
// from its commits, and joins again, long before the request times out.
func TestJoinIsNeverAnswered(t *testing.T) {
	t.Parallel()
	broker := fake(t, kfake.GroupMinSessionTimeout(10*time.Millisecond))
	cfg := options(broker.ListenAddrs(), "app", "a")
	cfg.SessionTimeout, cfg.RebalanceTimeout = time.Second, 10*patience
	a := start(t, cfg, tasks("in", 2, "")...)
	leases(t, a.ports[0], 2)
	m := joined(t, a.cluster)
	var swallowed atomic.Bool
	broker.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return nil, nil, r.(*kmsg.JoinGroupRequest).MemberID == m.id && swallowed.CompareAndSwap(false, true)
	})
	cfg.ProcessID, cfg.Logger = "b", logger("b")
	b := start(t, cfg, tasks("in", 2, "")...)
	leases(t, b.ports[0], 2)
	if !swallowed.Load() {
		t.Fatal("the other process did not make this one join")
	}

	lost, offset := 0, int64(0)
	commit := func() {
		offset++
		a.ports[0].Commit(processor.Commit{Positions: []processor.Position{position("in", 0, offset)}})
	}
	commit()
	until(t, a.ports[0], "the loss of all leases", func(e runtime.Events) bool {
		if lost += len(e.Lost); e.Commit != nil && lost < 2 {
			commit()
		}
		return lost == 2
	})
	if again := joined(t, a.cluster); again.id == m.id {
		t.Errorf("it joins as %q, whom the group does not know", again.id)
	}
}
