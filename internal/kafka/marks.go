package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// The metadata of committed positions holds a mark for each topic of the task, its inputs and changelogs: which topic of
// that name it was (KIP-516 topic id) and how many partitions it had at first. So the next lease sees that a changelog was deleted
// and created again, that a store is new, that a position is gone.

// topicState is what the brokers say of a topic.
type topicState struct {
	id         sarama.Uuid // zero if they do not know of ids, before Kafka 2.8
	partitions int32
}

// maxMarks bounds what marks take of the 4,096 bytes that a broker allows for metadata (offset.metadata.max.bytes): 30 each.
const maxMarks = 64

// A mark's value is the id, cut short, above the number of partitions.
const (
	countBits = 20
	countMask = 1<<countBits - 1
)

func markName(topic string) string {
	h := fnv.New32a()
	h.Write([]byte(topic))
	return fmt.Sprintf("%s%08x", processor.MarkPrefix, h.Sum32())
}

func (s topicState) mark(topic string) processor.Mark {
	id := binary.BigEndian.Uint64(s.id[:8]) ^ binary.BigEndian.Uint64(s.id[8:])
	return processor.Mark{Name: markName(topic), Value: int64(id>>1)&^countMask | int64(min(s.partitions, countMask))}
}

// recreated reports whether the mark is of another topic of the same name.
func (s topicState) recreated(topic string, marked int64) bool {
	now := s.mark(topic).Value &^ countMask
	was := marked &^ countMask
	return now != 0 && was != 0 && now != was
}

// name is the id in the brokers' own notation, empty if they have none.
func (s topicState) name() string {
	if s.id == (sarama.Uuid{}) {
		return ""
	}
	return s.id.String()
}

// marksOf returns the marks of a task, none if its topics are too many. The number of an input's partitions is that of the
// time when the group began to read it: see beginning.
func marksOf(t *TaskInfo, on ground) []processor.Mark {
	var marks []processor.Mark
	for _, topic := range t.topics() {
		s := on.topics[topic]
		if first := on.first(topic); first > 0 {
			s.partitions = min(s.partitions, first)
		}
		marks = append(marks, s.mark(topic))
	}
	if len(marks) > maxMarks {
		return nil
	}
	return marks
}

// first returns how many partitions an input had when the group began to read it, 0 if that is not known.
func (on ground) first(topic string) (partitions int32) {
	for tp, p := range on.positions {
		if tp.Topic != topic || p.err != nil || p.offset < 0 {
			continue
		}
		marked, ok := processor.Marks([]string{p.metadata})[markName(topic)]
		if n := int32(marked & countMask); ok && n > 0 && (partitions == 0 || n < partitions) && !on.topics[topic].recreated(topic, marked) {
			partitions = n
		}
	}
	return partitions
}

// topics returns all that the task reads, each once.
func (t *TaskInfo) topics() []string {
	var names []string
	seen := map[string]bool{}
	for _, tp := range t.partitions() {
		if !seen[tp.Topic] {
			seen[tp.Topic] = true
			names = append(names, tp.Topic)
		}
	}
	return names
}

// topicStates asks about topics. One that is not known is absent.
func (c *Cluster) topicStates(topics []string) (map[string]topicState, error) {
	resp, err := c.describe(c.ctx, topics)
	if err != nil {
		return nil, err
	}
	states := map[string]topicState{}
	for _, t := range resp.Topics {
		if t.Err == sarama.ErrNoError || t.Err == sarama.ErrLeaderNotAvailable {
			states[t.Name] = topicState{t.Uuid, int32(len(t.Partitions))}
		}
	}
	return states, nil
}
