package kafka

import (
	"encoding/binary"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/processor"
)

// protocolName is the name of the assignment protocol. All members of a group must use the same one.
const protocolName = "millrace"

// strategy assigns whole tasks: the partitions of a task go to one member. It is cooperative: what stays is not touched by
// a rebalance, and what moves is first given up by its owner.
type strategy struct{ group *group }

// Name implements sarama.BalanceStrategy.
func (s *strategy) Name() string { return protocolName }

// SupportedProtocols implements sarama.RebalanceProtocolBalanceStrategy.
func (s *strategy) SupportedProtocols() []sarama.RebalanceProtocol {
	return []sarama.RebalanceProtocol{sarama.RebalanceProtocolCooperative}
}

// SubscriptionUserData implements sarama.SubscriptionUserDataBalanceStrategy: it tells the group's leader about this member.
func (s *strategy) SubscriptionUserData([]string) ([]byte, error) {
	return encodeMember(len(s.group.ports)), nil
}

// OnAssignment implements sarama.OnAssignmentBalanceStrategy.
func (s *strategy) OnAssignment(a *sarama.ConsumerGroupMemberAssignment, _ int32) {
	s.group.assigned(a.Topics)
}

// AssignmentData implements sarama.BalanceStrategy.
func (s *strategy) AssignmentData(string, map[string][]int32, int32) ([]byte, error) { return nil, nil }

// Plan implements sarama.BalanceStrategy. It runs in the member that leads the group.
func (s *strategy) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, _ map[string][]int32) (sarama.BalanceStrategyPlan, error) {
	var all []assign.Member
	for id, meta := range members {
		m := assign.Member{ID: id, Capacity: decodeMember(meta.UserData), Generation: meta.GenerationID}
		owned := map[processor.TaskID]bool{}
		for _, o := range meta.OwnedPartitions {
			for _, p := range o.Partitions {
				if task, ok := s.group.tasks.byInput[processor.TopicPartition{Topic: o.Topic, Partition: p}]; ok && !owned[task] {
					owned[task] = true
					m.Owned = append(m.Owned, task)
				}
			}
		}
		all = append(all, m)
	}
	plan := sarama.BalanceStrategyPlan{}
	for member, tasks := range assign.Plan(s.group.tasks.list, all) {
		for _, id := range tasks {
			for _, tp := range s.group.tasks.byID[id].Inputs {
				plan.Add(member, tp.Topic, tp.Partition)
			}
		}
	}
	return plan, nil
}

// memberFormat is the first byte of a member's user data; later formats may only append to this one.
const memberFormat = 1

// encodeMember writes what a member tells the leader: its number of workers.
func encodeMember(workers int) []byte {
	return binary.AppendUvarint([]byte{memberFormat}, uint64(workers))
}

// decodeMember returns the number of workers, 1 if it cannot be read.
func decodeMember(data []byte) int {
	if len(data) < 2 || data[0] < memberFormat {
		return 1
	}
	workers, n := binary.Uvarint(data[1:])
	if n <= 0 || workers == 0 || workers > 1<<16 {
		return 1
	}
	return int(workers)
}

// taskTable is all tasks of the application.
type taskTable struct {
	list    []assign.Task
	byID    map[processor.TaskID]*TaskInfo
	byInput map[processor.TopicPartition]processor.TaskID
	weights map[processor.TaskID]int
	topics  map[string]int32 // partitions of each input topic that tasks read
}

func newTaskTable(tasks []TaskInfo) *taskTable {
	t := &taskTable{
		byID: map[processor.TaskID]*TaskInfo{}, byInput: map[processor.TopicPartition]processor.TaskID{},
		weights: map[processor.TaskID]int{}, topics: map[string]int32{},
	}
	for i := range tasks {
		info := &tasks[i]
		t.list = append(t.list, assign.Task{ID: info.ID, Weight: info.Weight})
		t.byID[info.ID] = info
		t.weights[info.ID] = info.Weight
		for _, tp := range info.Inputs {
			t.byInput[tp] = info.ID
			t.topics[tp.Topic]++
		}
	}
	return t
}

// whole returns the tasks all of whose inputs are among the partitions.
func (t *taskTable) whole(partitions map[string][]int32) map[processor.TaskID]bool {
	have := map[processor.TaskID]int{}
	for topic, ps := range partitions {
		for _, p := range ps {
			if id, ok := t.byInput[processor.TopicPartition{Topic: topic, Partition: p}]; ok {
				have[id]++
			}
		}
	}
	whole := map[processor.TaskID]bool{}
	for id, n := range have {
		if n == len(t.byID[id].Inputs) {
			whole[id] = true
		}
	}
	return whole
}
