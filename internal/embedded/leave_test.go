package embedded_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/embedded"
)

// member is one of a group, on a connection of its own.
type member struct {
	t          *testing.T
	broker     *sarama.Broker
	group, id  string
	generation int32
}

func newMember(t *testing.T, addr, group string) *member {
	m := &member{t: t, broker: dial(t, addr), group: group}
	resp, err := m.join()
	if err != nil || resp.Err != sarama.ErrMemberIdRequired {
		t.Fatal(err, resp)
	}
	m.id = resp.MemberId
	return m
}

func dial(t *testing.T, addr string) *sarama.Broker {
	b := sarama.NewBroker(addr)
	if err := b.Open(brokertest.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (m *member) join() (*sarama.JoinGroupResponse, error) {
	req := &sarama.JoinGroupRequest{Version: 5, GroupId: m.group, MemberId: m.id, ProtocolType: "consumer", SessionTimeout: 10_000, RebalanceTimeout: 60_000}
	if err := req.AddGroupProtocolMetadata("p", &sarama.ConsumerGroupMemberMetadata{Topics: []string{"in"}}); err != nil {
		return nil, err
	}
	resp, err := m.broker.JoinGroup(req)
	if err == nil {
		m.generation = resp.GenerationId
	}
	return resp, err
}

func (m *member) heartbeat() error {
	resp, err := m.broker.Heartbeat(&sarama.HeartbeatRequest{Version: 3, GroupId: m.group, MemberId: m.id, GenerationId: m.generation})
	if err != nil {
		return err
	}
	return resp.Err
}

// sync waits for the assignments, or gives each of those named an empty one.
func (m *member) sync(all ...*member) error {
	req := &sarama.SyncGroupRequest{Version: 3, GroupId: m.group, MemberId: m.id, GenerationId: m.generation}
	for _, o := range all {
		if err := req.AddGroupAssignmentMember(o.id, &sarama.ConsumerGroupMemberAssignment{}); err != nil {
			return err
		}
	}
	resp, err := m.broker.SyncGroup(req)
	if err != nil {
		return err
	}
	if resp.Err != sarama.ErrNoError {
		return resp.Err
	}
	return nil
}

// TestLeaveWhileWaitingForTheLeader: a member that leaves while it waits for the leader's assignments does not keep the
// others from joining again.
func TestLeaveWhileWaitingForTheLeader(t *testing.T) {
	t.Parallel()
	addr := start(t, embedded.Options{}).Addrs()[0]
	for round := range 10 {
		group := fmt.Sprint("group", round)
		leader := newMember(t, addr, group)
		if _, err := leader.join(); err != nil {
			t.Fatal(err)
		}
		follower := newMember(t, addr, group)
		joins := make(chan error, 1)
		go func() {
			_, err := follower.join()
			joins <- err
		}()
		for !errors.Is(leader.heartbeat(), sarama.ErrRebalanceInProgress) { // until the follower is there
		}
		if _, err := leader.join(); err != nil {
			t.Fatal(err)
		}
		if err := <-joins; err != nil {
			t.Fatal(err)
		}
		left := make(chan error, 1)
		go func() { _ = follower.sync() }()
		_ = leader.heartbeat() // to let the follower's requests arrive first, mostly
		other := dial(t, addr)
		go func() {
			_, err := other.LeaveGroup(&sarama.LeaveGroupRequest{Version: 3, GroupId: group, Members: []sarama.MemberIdentity{{MemberId: follower.id}}})
			left <- err
		}()
		for range 5 {
			_ = leader.heartbeat()
		}
		_ = leader.sync(leader, follower) // refused if the follower has left before it waited
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		again := make(chan error, 1)
		go func() {
			_, err := leader.join()
			again <- err
		}()
		select {
		case err := <-again:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("round %d: the leader waits for a member that has left", round)
		}
	}
}
