package processor

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/store"
)

// TopicPartition names one partition of a topic by the name that the broker knows.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns "topic-partition", as Kafka's own tools print it.
func (p TopicPartition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// TaskID names a task: a sub-topology and a partition.
type TaskID struct {
	Subtopology int32
	Partition   int32
}

// String returns "<subtopology>_<partition>", Kafka Streams' form, which is also the name of the task's folder.
func (id TaskID) String() string { return fmt.Sprintf("%d_%d", id.Subtopology, id.Partition) }

// Topic is a topic as a graph knows it, before the application's id is known.
type Topic struct {
	Name     string
	Internal bool   // a repartition topic: on the broker it is named <app>-<name>-repartition
	Suffix   string // of an internal topic: what it is named after instead of "repartition"
}

// Physical returns the name of the topic on the broker.
func (t Topic) Physical(app string) string {
	switch {
	case !t.Internal:
		return t.Name
	case t.Suffix != "":
		return app + "-" + t.Name + "-" + t.Suffix
	}
	return app + "-" + t.Name + "-repartition"
}

// Kind says what a node does in the graph's shape.
type Kind uint8

// The kinds of nodes.
const (
	KindProcessor Kind = iota // has parents and, maybe, children
	KindSource                // reads a topic
	KindSink                  // writes a topic
)

// Node is one node of a sub-topology. Its types are erased: Bind alone knows them.
type Node struct {
	Name     string
	Kind     Kind
	Topic    Topic    // of a source or a sink
	Stores   []string // names of the stores that the node may use
	Globals  []string // names of the global tables that the node reads
	Children []int    // indexes into Spec.Nodes
	// Bind builds the node for one task, once. For a source it returns a Source; for any other node the Emit[K, V] of
	// the type that its parents send.
	Bind func(*Binding) (any, error)
}

// Source is a bound source node: it decodes a fetched record and sends it on.
type Source func(*Raw) error

// StoreSpec is a keyed store of a sub-topology.
type StoreSpec struct {
	Name        string
	Declaration store.Declaration
	// ByKey says that the rows of a key are in the partition that PartitionForKey chooses for it, and in no other.
	ByKey bool
	// RecordKeys says that its keys are those of the records that come in, as a rule: which look-ups are next can be foreseen.
	RecordKeys bool
}

// Changelog returns the name of the store's changelog topic: <app>-<store>-changelog.
func (s StoreSpec) Changelog(app string) string { return app + "-" + s.Name + "-changelog" }

// Spec is one sub-topology: the nodes that one task runs together. It is immutable and shared by all of its tasks.
type Spec struct {
	ID     int32
	Nodes  []*Node // parents before their children
	Stores []StoreSpec
	// Globals names the global tables that the nodes read, each once.
	Globals []string
}

// Sources returns the source nodes in the order of their declaration.
func (s *Spec) Sources() []*Node { return s.ofKind(KindSource) }

// Sinks returns the sink nodes in the order of their declaration.
func (s *Spec) Sinks() []*Node { return s.ofKind(KindSink) }

// index returns the place of the node of that name, -1 if there is none.
func (s *Spec) index(name string) int32 {
	return int32(slices.IndexFunc(s.Nodes, func(n *Node) bool { return n.Name == name }))
}

// name is the reverse of index.
func (s *Spec) name(index int32) string {
	if index < 0 {
		return ""
	}
	return s.Nodes[index].Name
}

func (s *Spec) ofKind(k Kind) []*Node {
	var nodes []*Node
	for _, n := range s.Nodes {
		if n.Kind == k {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Binding is what a node can reach while it is bound to a task.
type Binding struct {
	Task     *Task
	Node     *Node
	Children []any // bound children, each an Emit of the type that the node sends
	Names    []string
	// Timestamp may be set by a source while it is bound: it returns the event time of a fetched record, given the highest
	// of its partition so far (Unknown before the first). A negative one is a bad record.
	Timestamp func(raw *Raw, partitionTime int64) int64
	// MaxAhead may be set by a source while it is bound: records whose event time lies further ahead of the wall clock are
	// dropped and move no time. 0 is no bound.
	MaxAhead time.Duration
}
