package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// group is this process's membership in the consumer group. sarama keeps it alive and rebalances; a claim of sarama's is a
// lease and nothing else: it is paused as it starts.
//
// Leases come and go as the group's assignments say (strategy.OnAssignment). A claim that sarama ends stays until its
// lease is released, for until then this process does not join the next generation, in which others get the task.
type group struct {
	cluster *Cluster
	tasks   *taskTable
	purger  *purger

	client  sarama.Client
	dialer  *dialer
	members atomic.Pointer[consumers]
	leaving atomic.Bool
	outside trouble // no membership
	doubts  doubts

	summon chan struct{} // the group is to rebalance
	guests guests

	mu            sync.Mutex
	ports         []*Port // those whose workers have not ended
	leases        map[processor.TaskID]*lease
	toFind        []*lease                           // to be looked up when the mutex is unlocked
	given         assignment                         // the latest
	wanted        map[processor.TaskID]runtime.Role  // what it says
	warmups       map[processor.TaskID]bool          // those of the standbys that are to take the task over
	promised      []processor.TaskID                 // likewise
	moves         map[processor.TaskID]*Port         // to other workers of this process
	last          map[processor.TaskID]*Port         // who had a task
	known         map[processor.TopicPartition]int64 // committed by this process
	followed      map[processor.TopicPartition]int64 // how far its stores that are behind have come
	logs          map[processor.TopicPartition]Range // where changelogs ended when they were last looked at
	session       sarama.ConsumerGroupSession        // nil while there is none
	endMembership context.CancelFunc
	latest        member // of the latest session
	stopping      bool
	isDrained     bool
	drained       chan struct{} // closed when stopping and no lease is left to give back
}

// member names this process's membership in one generation.
type member struct {
	id         string
	generation int32
	instance   *string
}

// leaveWait bounds the wait for what should be over at once when a process leaves.
const leaveWait = 3 * time.Second

func newGroup(c *Cluster, tasks []TaskInfo, ports []*Port) (*group, error) {
	g := &group{
		cluster: c, tasks: newTaskTable(slices.Clone(tasks)), ports: slices.Clone(ports), purger: newPurger(c, tasks),
		summon: make(chan struct{}, 1), drained: make(chan struct{}),
		leases: map[processor.TaskID]*lease{}, moves: map[processor.TaskID]*Port{}, last: map[processor.TaskID]*Port{},
		known: map[processor.TopicPartition]int64{}, followed: map[processor.TopicPartition]int64{}, logs: map[processor.TopicPartition]Range{},
	}
	g.outside = trouble{log: c.cfg.Logger, what: "membership in the group has ended, joining again", over: "a member of the group again"}
	conf := c.cfg.membership(&strategy{group: g})
	g.dialer = useDialer(conf, retryPause)
	conf.Metadata.Retry.BackoffFunc = func(int, int) time.Duration {
		if g.leaving.Load() {
			return 0
		}
		return retryPause
	}
	err := c.answered(c.ctx, func() (err error) {
		g.client, err = sarama.NewClient(c.cfg.Brokers, conf)
		return err
	})
	if err != nil {
		g.dialer.end()
		return nil, fmt.Errorf("kafka: group %q: %w", c.cfg.App, err)
	}
	if err = g.renew(); err != nil {
		g.dialer.end()
		return nil, errors.Join(err, g.client.Close())
	}
	return g, nil
}

// run is a member of the group until ctx ends and all leases are released, or the cluster is closed.
func (g *group) run(ctx context.Context) {
	joined, leave := context.WithCancel(g.cluster.ctx)
	defer leave()
	consumed := make(chan struct{})
	g.cluster.work.Go(func() { g.watchStandbys(joined) })
	g.cluster.work.Go(func() {
		defer close(consumed)
		g.consume(joined)
	})
	select {
	case <-ctx.Done():
		g.stop()
		select {
		case <-g.drained:
		case <-g.cluster.ctx.Done():
		}
	case <-g.cluster.ctx.Done():
		g.stop()
	}
	g.leaving.Store(true)
	leave()
	left := g.depart(member{}) // at once: what sarama waits for, such as the others to join, is answered then
	select {
	case <-consumed:
	case <-time.After(leaveWait): // it hangs in a request all the same
		g.dialer.end()
		<-consumed
	}
	g.depart(left)
	g.dialer.end() // sarama would look for the coordinator, to no purpose
	_ = g.members.Load().Close()
	_ = g.client.Close()
}

// consume joins the group again whenever a membership ends.
func (g *group) consume(ctx context.Context) {
	topics := slices.Sorted(maps.Keys(g.tasks.topics))
	var fenced time.Time
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		began := time.Now()
		err := g.beMember(ctx, topics)
		g.lose()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, sarama.ErrFencedInstancedId) && time.Since(fenced) > g.cluster.cfg.SessionTimeout:
			// The broker may know this process by a later id that it could not tell: the answer to a join was lost. Another
			// process with the same process id is fenced in turn when this one joins anew, and then fences it again.
			fenced = time.Now()
			if err := g.renew(); err != nil {
				g.fail(err)
				return
			}
		case errors.Is(err, sarama.ErrFencedInstancedId):
			g.fail(fmt.Errorf("%w: %q in group %q: give every process a state directory of its own", ErrInstanceFenced, g.cluster.cfg.ProcessID, g.cluster.cfg.App))
			return
		case len(topics) == 0:
			return
		}
		g.outside.has(g, err)
		if time.Since(began) > g.cluster.cfg.SessionTimeout {
			wait = firstPause
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// beMember joins the group once, and is a member until that ends.
func (g *group) beMember(ctx context.Context, topics []string) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.mu.Lock()
	g.endMembership = end
	g.mu.Unlock()
	return g.members.Load().Consume(ctx, topics, handler{g})
}

// membership returns what a commit of offsets has to name. ok is false when this process is no member.
func (g *group) membership() (m member, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil || g.session.Context().Err() != nil {
		return member{}, false
	}
	return g.member(), true
}

func (g *group) member() member {
	m := member{id: g.session.MemberID(), generation: g.session.GenerationID()}
	if id := g.cluster.cfg.ProcessID; id != "" {
		m.instance = &id
	}
	return m
}

// depart leaves the group, so that others take over at once. sarama does not do so for static members. It returns as whom it
// has left, which is not done again.
func (g *group) depart(left member) member {
	g.mu.Lock()
	if g.session != nil {
		g.latest = g.member()
	}
	m := g.latest
	g.mu.Unlock()
	if m.id == left.id {
		return left
	}
	answered := make(chan error, 1)
	go func() { answered <- g.sendLeave(m, "the process is stopping") }()
	select {
	case err := <-answered:
		if err != nil {
			g.cluster.cfg.Logger.Warn("leaving the group failed; others take over when the session times out", "error", err)
		}
	case <-time.After(leaveWait):
		g.cluster.dialer.end() // the process is going away: nothing else is under way
		<-answered
	}
	return m
}

func (g *group) sendLeave(m member, reason string) error {
	for tries := 0; ; tries++ {
		coordinator, err := g.cluster.control.Coordinator(g.cluster.cfg.App)
		if err != nil {
			return err
		}
		b, err := g.cluster.admin.to(coordinator.Addr())
		if err != nil {
			return err
		}
		resp, err := b.LeaveGroup(&sarama.LeaveGroupRequest{
			Version: 5, GroupId: g.cluster.cfg.App, Members: []sarama.MemberIdentity{{MemberId: m.id, GroupInstanceId: m.instance, Reason: &reason}},
		})
		if err != nil {
			g.cluster.admin.drop(b)
		} else if err = code(resp.Err); err == nil {
			return nil // a member that is unknown by now has left as well
		}
		if tries == 3 {
			return err
		}
		_ = g.cluster.control.RefreshCoordinator(g.cluster.cfg.App)
	}
}

// renew makes sarama's side of the membership anew: it joins as a member that the group does not know yet.
func (g *group) renew() error {
	members, err := sarama.NewConsumerGroupFromClient(g.cluster.cfg.App, claimClient{g.client})
	if err != nil {
		return fmt.Errorf("kafka: group %q: %w", g.cluster.cfg.App, err)
	}
	if former := g.members.Swap(&consumers{members}); former != nil {
		_ = former.Close()
	}
	g.cluster.work.Go(func() { // drains what sarama reports beside the return values
		for err := range members.Errors() {
			g.cluster.cfg.Logger.Debug("group", "error", err)
		}
	})
	return nil
}

// consumers is sarama's side of a membership.
type consumers struct{ sarama.ConsumerGroup }

// handler is what sarama calls.
type handler struct{ group *group }

// Setup implements sarama.ConsumerGroupHandler: a membership has begun.
func (h handler) Setup(s sarama.ConsumerGroupSession) error {
	g := h.group
	g.mu.Lock()
	g.session = s
	g.latest = g.member()
	g.mu.Unlock()
	g.outside.left(g)
	g.cluster.cfg.Logger.Info("joined the group", "member", s.MemberID(), "generation", s.GenerationID())
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler.
func (h handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements sarama.ConsumerGroupHandler. It returns when the claim has been revoked and its lease released,
// or the membership has ended. Returning earlier would end the membership.
func (h handler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	g := h.group
	g.members.Load().Pause(map[string][]int32{claim.Topic(): {claim.Partition()}})
	done := s.Context().Done()
	for open := true; open; {
		select {
		case _, open = <-claim.Messages():
		case <-done:
			g.lose()
			return nil
		}
	}
	ended := g.ended(processor.TopicPartition{Topic: claim.Topic(), Partition: claim.Partition()})
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
	case <-done:
		g.lose()
	}
	return nil
}

// ended returns what is closed when the lease of a partition is given back, nil if it is or if there is none.
func (g *group) ended(tp processor.TopicPartition) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, known := g.tasks.byInput[tp]
	if l := g.leases[id]; known && l != nil {
		return l.ended
	}
	return nil
}
