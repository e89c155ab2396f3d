package kafka

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/processor"
)

// protocolName is the name of the assignment protocol. All members of a group must use the same one.
const protocolName = "millrace"

// strategy assigns whole tasks: the partitions of a task go to one member. It is cooperative: what stays is not touched by
// a rebalance, and what moves is first given up by its owner. Standbys, which have no partitions, travel in the user data.
type strategy struct {
	group  *group
	shares map[string]assign.Share // of the latest plan, by member
}

// Name implements sarama.BalanceStrategy.
func (s *strategy) Name() string { return protocolName }

// SupportedProtocols implements sarama.RebalanceProtocolBalanceStrategy.
func (s *strategy) SupportedProtocols() []sarama.RebalanceProtocol {
	return []sarama.RebalanceProtocol{sarama.RebalanceProtocolCooperative}
}

// SubscriptionUserData implements sarama.SubscriptionUserDataBalanceStrategy: it tells the group's leader about this
// member. It is called whenever the member is about to join.
func (s *strategy) SubscriptionUserData([]string) ([]byte, error) {
	s.group.dismissGuest()
	return s.group.report().encode(), nil
}

// OnAssignment implements sarama.OnAssignmentBalanceStrategy.
func (s *strategy) OnAssignment(a *sarama.ConsumerGroupMemberAssignment, _ int32) {
	s.group.assigned(a.Topics, decodeShare(a.UserData))
}

// AssignmentData implements sarama.BalanceStrategy.
func (s *strategy) AssignmentData(member string, _ map[string][]int32, _ int32) ([]byte, error) {
	return encodeShare(s.shares[member]), nil
}

// Plan implements sarama.BalanceStrategy. It runs in the member that leads the group.
func (s *strategy) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, _ map[string][]int32) (sarama.BalanceStrategyPlan, error) {
	told := map[string]memberData{}
	for id, meta := range members {
		told[id] = decodeMember(meta.UserData)
	}
	table := s.group.tasks
	tasks, ends := table.sized(s.group.changelogs(planWait), told)
	var all []assign.Member
	for id, meta := range members {
		if told[id].guest {
			continue
		}
		all = append(all, table.member(id, meta, told[id], ends))
	}
	cfg := s.group.cluster.cfg
	s.shares = assign.Plan(tasks, all, assign.Settings{Standbys: cfg.Standbys, MaxWarmups: cfg.MaxWarmups, AcceptableLag: cfg.AcceptableLag})

	plan := sarama.BalanceStrategyPlan{}
	for id := range members { // one that has no partitions is told its standbys all the same
		plan[id] = map[string][]int32{}
	}
	for id, share := range s.shares {
		for _, task := range share.Active {
			for _, tp := range table.byID[task].Inputs {
				plan.Add(id, tp.Topic, tp.Partition)
			}
		}
	}
	return plan, nil
}

// planWait bounds how long the other members wait for the leader to learn how long the changelogs are.
const planWait = time.Second

// unknownSize is the size of changelogs that nobody could be asked about.
const unknownSize = 1 << 62

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
		t.list = append(t.list, assign.Task{ID: info.ID, Weight: info.Weight, Stateful: len(info.Changelogs) > 0})
		t.byID[info.ID] = info
		t.weights[info.ID] = info.Weight
		for _, tp := range info.Inputs {
			t.byInput[tp] = info.ID
			t.topics[tp.Topic]++
		}
	}
	return t
}

// sized returns the tasks with the sizes of their changelogs, and where those end: the sum for each task. Where a log could
// not be asked, the member that has come farthest stands for the end.
func (t *taskTable) sized(logs map[processor.TopicPartition]Range, told map[string]memberData) ([]assign.Task, map[processor.TaskID]int64) {
	ends := map[processor.TaskID]int64{}
	for _, m := range told {
		for _, s := range m.states {
			ends[s.task] = max(ends[s.task], s.position)
		}
	}
	tasks := make([]assign.Task, len(t.list))
	for i, task := range t.list {
		if tasks[i] = task; !task.Stateful {
			continue
		}
		var size, end int64
		for _, c := range t.byID[task.ID].Changelogs {
			log, known := logs[c.TopicPartition]
			if !known {
				size = unknownSize
				break
			}
			size, end = size+log.End-log.Start, end+log.End
		}
		if tasks[i].Size = size; size != unknownSize {
			ends[task.ID] = end
		}
	}
	return tasks, ends
}

// member translates what a member says.
func (t *taskTable) member(id string, meta sarama.ConsumerGroupMemberMetadata, told memberData, ends map[processor.TaskID]int64) assign.Member {
	m := assign.Member{
		ID: id, Capacity: told.workers, Rack: told.rack, Generation: meta.GenerationID, Promised: told.promised,
		State: map[processor.TaskID]assign.State{},
	}
	owned := map[processor.TaskID]bool{}
	for _, o := range meta.OwnedPartitions {
		for _, p := range o.Partitions {
			if task, ok := t.byInput[processor.TopicPartition{Topic: o.Topic, Partition: p}]; ok && !owned[task] {
				owned[task] = true
				m.Owned = append(m.Owned, task)
			}
		}
	}
	for _, s := range told.states {
		m.State[s.task] = assign.State{Lag: max(0, ends[s.task]-s.position), Open: s.open, Ready: s.ready}
	}
	return m
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
