package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// A member of a consumer group can make it rebalance only by joining again, and sarama's members do that when the broker
// says so and not when they want to. To join in the place of sarama's member, with its id, is not sound: if all others have
// joined in the meantime, the generation begins without sarama's knowledge, and its next heartbeat loses the membership and
// every lease with it. So a guest is sent: a second, dynamic member, which joins. Now the group is rebalancing, whoever else
// is in it. When sarama's member is about to join, it first makes the guest leave. Until it joins the new generation cannot
// begin, so the guest is never part of one, and there is one rebalance and no more. Partitions that stay are not touched
// by it. Should the guest be part of a generation after all, as when a request is lost, then it is given nothing, and its
// leaving, or the end of its session, makes one more rebalance.

// guests is the guest who is there, if one is.
type guests struct {
	mu   sync.Mutex
	id   string
	gone chan struct{} // closed when it is made to leave
}

const (
	guestStay = 5 * time.Second // after which the group should be rebalancing
	byeWait   = time.Second     // for the answer to its leaving
)

// callForRebalance sends a guest, and waits until this process's own member joins again.
func (g *group) callForRebalance(ctx context.Context) error {
	if _, ok := g.membership(); !ok {
		return nil // it is about to join anyway
	}
	conf := g.cluster.cfg.client()
	way := useDialer(conf, 0)
	door := newLines(conf)
	defer func() {
		way.end() // the request may still wait for the generation that the guest is no part of
		door.close()
	}()
	coordinator, err := g.cluster.control.Coordinator(g.cluster.cfg.App)
	if err != nil {
		return err
	}
	b, err := door.to(coordinator.Addr())
	if err != nil {
		return err
	}
	id, err := g.introduce(b)
	if err != nil {
		_ = g.cluster.control.RefreshCoordinator(g.cluster.cfg.App)
		return err
	}
	gone := make(chan struct{})
	g.guests.mu.Lock()
	g.guests.id, g.guests.gone = id, gone
	g.guests.mu.Unlock()
	g.cluster.cfg.Logger.Debug("calling for a rebalance", "guest", id)
	g.cluster.work.Go(func() { _, _ = g.sendGuest(b, id) }) // answered when it has left, or not at all
	timer := time.NewTimer(guestStay)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-timer.C:
		err = errors.New("kafka: the group does not rebalance though a member has joined")
	case <-ctx.Done():
	}
	g.dismissGuest()
	return err
}

// introduce asks for a member id, as dynamic members have to. Nothing comes of it until a request is made with it.
func (g *group) introduce(b *sarama.Broker) (string, error) {
	resp, err := g.sendGuest(b, "")
	switch {
	case err != nil:
		return "", err
	case resp.Err != sarama.ErrMemberIdRequired:
		return "", fmt.Errorf("kafka: a guest is not let into group %q: %w", g.cluster.cfg.App, resp.Err)
	}
	return resp.MemberId, nil
}

func (g *group) sendGuest(b *sarama.Broker, id string) (*sarama.JoinGroupResponse, error) {
	req := &sarama.JoinGroupRequest{
		Version: 5, GroupId: g.cluster.cfg.App, MemberId: id, ProtocolType: "consumer",
		SessionTimeout: int32(g.cluster.cfg.SessionTimeout.Milliseconds()), RebalanceTimeout: int32(g.cluster.cfg.RebalanceTimeout.Milliseconds()),
	}
	var topics []string
	for topic := range g.tasks.topics {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	err := req.AddGroupProtocolMetadata(protocolName, &sarama.ConsumerGroupMemberMetadata{Topics: topics, UserData: memberData{workers: 1, guest: true}.encode()})
	if err != nil {
		return nil, err
	}
	return b.JoinGroup(req)
}

// dismissGuest makes the guest leave if there is one.
func (g *group) dismissGuest() {
	g.guests.mu.Lock()
	defer g.guests.mu.Unlock()
	if g.guests.id == "" {
		return
	}
	left := make(chan error, 1)
	m := member{id: g.guests.id}
	g.cluster.work.Go(func() { left <- g.sendLeave(m, "the group is rebalancing") })
	timer := time.NewTimer(byeWait)
	defer timer.Stop()
	select {
	case err := <-left:
		if err != nil {
			g.cluster.cfg.Logger.Debug("the guest cannot leave the group, its session ends by itself", "error", err)
		}
	case <-timer.C:
	}
	g.guests.id = ""
	close(g.guests.gone)
}
