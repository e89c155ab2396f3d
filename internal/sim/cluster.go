package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// Cluster is a cluster of one broker with its topics, transactions and group offsets. It is not safe for concurrent use.
type Cluster struct {
	// LateMarkers leaves the markers of decided transactions to WriteMarker, as a broker writes them some time after it has
	// answered; otherwise they are written within the deciding call.
	LateMarkers bool

	topics       map[string][]*log
	transactions map[string]*transaction // by transactional id
	groups       map[string]*Group
	markers      []marker
	lastProducer int64
	written      int64 // entries
}

// NewCluster returns a cluster without topics.
func NewCluster() *Cluster {
	return &Cluster{topics: map[string][]*log{}, transactions: map[string]*transaction{}, groups: map[string]*Group{}}
}

// CreateTopic makes a topic, at least one partition wide. Making it again is no error, unless the numbers of partitions
// differ: ErrTopicExists.
func (c *Cluster) CreateTopic(name string, partitions int32) error {
	if old, ok := c.topics[name]; ok {
		if len(old) != int(partitions) {
			return fmt.Errorf("%w: %s has %d, not %d", ErrTopicExists, name, len(old), partitions)
		}
		return nil
	}
	logs := make([]*log, max(partitions, 1))
	for i := range logs {
		logs[i] = newLog(&c.written)
	}
	c.topics[name] = logs
	return nil
}

// Topics returns the names of all topics, sorted.
func (c *Cluster) Topics() []string { return slices.Sorted(maps.Keys(c.topics)) }

// Partitions returns the number of a topic's partitions, 0 if there is no such topic.
func (c *Cluster) Partitions(topic string) int32 { return int32(len(c.topics[topic])) }

func (c *Cluster) log(tp processor.TopicPartition) (*log, error) {
	if logs := c.topics[tp.Topic]; tp.Partition >= 0 && int(tp.Partition) < len(logs) {
		return logs[tp.Partition], nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownTopic, tp)
}

// Append writes records outside of any transaction and returns the offset of the first. The offsets within records are
// not looked at; the cluster keeps the slices of bytes.
func (c *Cluster) Append(tp processor.TopicPartition, records ...processor.Raw) (int64, error) {
	l, err := c.log(tp)
	if err != nil {
		return 0, err
	}
	return l.write(records), nil
}

// Read returns up to limit committed records from offset on, and the position behind what it passed: markers and records
// of aborted transactions are passed, an undecided transaction is not. The slice is the caller's, the bytes are not.
func (c *Cluster) Read(tp processor.TopicPartition, offset int64, limit int) ([]processor.Raw, int64, error) {
	l, err := c.log(tp)
	if err != nil {
		return nil, offset, err
	}
	return l.read(offset, limit)
}

// ReadAll returns all committed records of a partition, nil for an unknown one.
func (c *Cluster) ReadAll(tp processor.TopicPartition) []processor.Raw {
	l, err := c.log(tp)
	if err != nil {
		return nil
	}
	records, _, _ := l.read(l.start, len(l.entries)+1)
	return records
}

// Entries returns everything that a partition holds from an offset on, with its fate. The slice is the caller's.
func (c *Cluster) Entries(tp processor.TopicPartition, from int64) []Entry {
	l, err := c.log(tp)
	if err != nil {
		return nil
	}
	return slices.Clone(l.entries[l.index(from):])
}

// Start returns the first offset of a partition, 0 for an unknown one.
func (c *Cluster) Start(tp processor.TopicPartition) int64 {
	if l, err := c.log(tp); err == nil {
		return l.start
	}
	return 0
}

// End returns the high watermark of a partition: the offset that its next record gets. It is 0 for an unknown one.
func (c *Cluster) End(tp processor.TopicPartition) int64 {
	if l, err := c.log(tp); err == nil {
		return l.end
	}
	return 0
}

// Stable returns the last stable offset of a partition: nothing from there on can be read yet.
func (c *Cluster) Stable(tp processor.TopicPartition) int64 {
	if l, err := c.log(tp); err == nil {
		return l.stable()
	}
	return 0
}

// DeleteRecords makes offset the first one of a partition, as retention does.
func (c *Cluster) DeleteRecords(tp processor.TopicPartition, offset int64) {
	if l, err := c.log(tp); err == nil {
		l.deleteBefore(offset)
	}
}

// Compact cleans a partition as a broker's log cleaner does: each key keeps its last committed record. Offsets stay.
func (c *Cluster) Compact(tp processor.TopicPartition) {
	if l, err := c.log(tp); err == nil {
		l.compact()
	}
}
