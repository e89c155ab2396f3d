package embedded

import (
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaveWait bounds how long a leave is put off.
const leaveWait = time.Second

// syncs knows which members of groups wait in SyncGroup for their leader's assignments. kfake counts one that leaves then as
// one that has left JoinGroup: from then on it waits for one member more than there are, and the joins of all others hang
// until RebalanceTimeout. So their leaving is put off until the leader has spoken. Only the cluster's loop touches it.
type syncs struct {
	settled map[string]int32           // generation of each group for which its leader has sent the assignments
	waiting map[string]map[string]bool // member ids, by group
	wake    chan struct{}              // closed and replaced when a leader has spoken
}

func watchSyncs(c *kfake.Cluster) {
	s := &syncs{settled: map[string]int32{}, waiting: map[string]map[string]bool{}, wake: make(chan struct{})}
	watch := func(key kmsg.Key, see func(kmsg.Request)) {
		c.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			see(r)
			return nil, nil, false
		})
	}
	watch(kmsg.SyncGroup, func(r kmsg.Request) { s.sync(r.(*kmsg.SyncGroupRequest)) })
	watch(kmsg.JoinGroup, func(r kmsg.Request) {
		req := r.(*kmsg.JoinGroupRequest)
		delete(s.waiting[req.Group], req.MemberID)
	})
	watch(kmsg.LeaveGroup, func(r kmsg.Request) {
		req := r.(*kmsg.LeaveGroupRequest)
		for deadline := time.Now().Add(leaveWait); s.waits(req) && time.Now().Before(deadline); {
			wake := s.wake
			c.SleepControl(func() {
				select {
				case <-wake:
				case <-time.After(time.Until(deadline)):
				}
			})
		}
		for _, m := range req.Members {
			delete(s.waiting[req.Group], m.MemberID)
		}
	})
}

// sync notes who speaks: only a leader sends assignments, and it always does, as it is a member itself.
func (s *syncs) sync(req *kmsg.SyncGroupRequest) {
	switch {
	case len(req.GroupAssignment) > 0:
		s.settled[req.Group] = req.Generation
		delete(s.waiting, req.Group)
		close(s.wake)
		s.wake = make(chan struct{})
	case s.settled[req.Group] != req.Generation:
		if s.waiting[req.Group] == nil {
			s.waiting[req.Group] = map[string]bool{}
		}
		s.waiting[req.Group][req.MemberID] = true
	}
}

// waits reports whether one of those who leave is waiting for its leader.
func (s *syncs) waits(req *kmsg.LeaveGroupRequest) bool {
	for _, m := range req.Members {
		if s.waiting[req.Group][m.MemberID] {
			return true
		}
	}
	return false
}
