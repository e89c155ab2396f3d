package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// Layout is a topology placed on the topics of one application: its tasks, what each reads and keeps, and the internal
// topics that it needs.
type Layout struct {
	// Tasks are all tasks, by sub-topology and then partition. A sub-topology has as many as its widest source has partitions.
	Tasks []processor.TaskID
	// Inputs are the partitions that each task reads, in the order of its sources. A source with fewer partitions than the
	// widest has none for the tasks of the highest numbers.
	Inputs map[processor.TaskID][]processor.TopicPartition
	// Changelogs are the changelog partitions of each task's stores, in the order of Spec.Stores. A task without stores has
	// no entry.
	Changelogs map[processor.TaskID][]Changelog
	// Create names the internal topics that do not exist yet, by name.
	Create []InternalTopic
	// Existing names the internal topics that exist, with the settings that they should have.
	Existing []InternalTopic
	// Partitions has the count of every topic that was known before and of every topic in Create.
	Partitions map[string]int32
}

// Changelog is the changelog partition of a store.
type Changelog struct {
	Store string
	processor.TopicPartition
}

// InternalTopic is a repartition or changelog topic that the application has to create.
type InternalTopic struct {
	Name       string
	Partitions int32
	Config     map[string]string // topic settings by Kafka's names; replication is not among them
}

// Layout places the topology on topics. app is the application's id; counts are the partition counts of existing topics by
// their names on the broker, those of internal topics included; deadLetterTopic is empty if none is used.
//
// A repartition topic gets as many partitions as the widest topic that its writer reads, or as the topics have with which
// its reader must share partitions. All topics whose records reach one store must have equal counts, or equal keys would
// meet different tasks.
//
// Errors: *MissingTopicsError alone, or any number of *PartitionMismatchError and *InternalTopicError, joined.
func (t *Topology) Layout(app string, counts map[string]int32, deadLetterTopic string) (*Layout, error) {
	p := &planner{t: t, app: app, existing: counts, counts: map[processor.Topic]int32{}}
	if err := p.missing(deadLetterTopic); err != nil {
		return nil, err
	}
	p.size()
	l := &Layout{
		Inputs: map[processor.TaskID][]processor.TopicPartition{}, Changelogs: map[processor.TaskID][]Changelog{},
		Partitions: maps.Clone(counts),
	}
	p.check()
	p.repartitions(l)
	for _, s := range t.specs {
		p.place(l, s)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	for _, topics := range [][]InternalTopic{l.Create, l.Existing} {
		slices.SortFunc(topics, func(a, b InternalTopic) int { return strings.Compare(a.Name, b.Name) })
	}
	return l, nil
}

// planner works out one layout.
type planner struct {
	t        *Topology
	app      string
	existing map[string]int32
	counts   map[processor.Topic]int32 // of all sources
	errs     []error
}

func (p *planner) missing(deadLetterTopic string) error {
	names := map[string]bool{}
	for _, topic := range append(p.t.SourceTopics(), p.t.SinkTopics()...) {
		if !topic.Internal {
			names[topic.Name] = true
		}
	}
	for _, g := range p.t.globals {
		names[g.Topic.Name] = true
	}
	if deadLetterTopic != "" {
		names[deadLetterTopic] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return p.existing[name] > 0 })
	if len(names) == 0 {
		return nil
	}
	return &MissingTopicsError{Topics: slices.Sorted(maps.Keys(names))}
}

// check finds stores that records from differently partitioned topics reach. The same topics are reported once.
func (p *planner) check() {
	for _, s := range p.t.specs {
		var seen [][]processor.Topic
		for _, store := range s.Stores {
			topics := sourcesOf(s, store.Name)
			known := slices.ContainsFunc(seen, func(t []processor.Topic) bool { return slices.Equal(t, topics) })
			if known || !p.differ(topics) {
				continue
			}
			seen = append(seen, topics)
			e := &PartitionMismatchError{Subtopology: s.ID, Store: store.Name, Counts: map[string]int32{}}
			for _, topic := range topics {
				e.Topics = append(e.Topics, topic.Physical(p.app))
				e.Counts[topic.Physical(p.app)] = p.counts[topic]
			}
			p.errs = append(p.errs, e)
		}
	}
}

func (p *planner) differ(topics []processor.Topic) bool {
	return slices.ContainsFunc(topics, func(t processor.Topic) bool { return p.counts[t] != p.counts[topics[0]] })
}

// repartitions lists the repartition topics to create, or checks those that exist.
func (p *planner) repartitions(l *Layout) {
	for _, topic := range p.t.SourceTopics() {
		if topic.Internal {
			p.internal(l, topic.Physical(p.app), p.counts[topic], map[string]string{
				"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800",
				"message.timestamp.type": "CreateTime",
			})
		}
	}
}

// place adds the tasks of a sub-topology.
func (p *planner) place(l *Layout, s *processor.Spec) {
	tasks := int32(0)
	for _, n := range s.Sources() {
		tasks = max(tasks, p.counts[n.Topic])
	}
	for _, store := range s.Stores {
		p.internal(l, store.Changelog(p.app), tasks, store.Declaration.TopicConfig())
	}
	for partition := range tasks {
		id := processor.TaskID{Subtopology: s.ID, Partition: partition}
		l.Tasks = append(l.Tasks, id)
		for _, n := range s.Sources() {
			if partition < p.counts[n.Topic] {
				tp := processor.TopicPartition{Topic: n.Topic.Physical(p.app), Partition: partition}
				l.Inputs[id] = append(l.Inputs[id], tp)
			}
		}
		for _, store := range s.Stores {
			tp := processor.TopicPartition{Topic: store.Changelog(p.app), Partition: partition}
			l.Changelogs[id] = append(l.Changelogs[id], Changelog{store.Name, tp})
		}
	}
}

// internal adds an internal topic to those to create, or to those that exist.
func (p *planner) internal(l *Layout, name string, partitions int32, config map[string]string) {
	found, exists := p.existing[name]
	switch {
	case exists && found != partitions:
		p.errs = append(p.errs, &InternalTopicError{Topic: name, Found: found, Needed: partitions})
	case exists:
		l.Existing = append(l.Existing, InternalTopic{Name: name, Partitions: partitions, Config: config})
	case checkName(name) != nil:
		p.errs = append(p.errs, fmt.Errorf("topology: internal topic %q: %w", name, checkName(name)))
	default:
		l.Create = append(l.Create, InternalTopic{Name: name, Partitions: partitions, Config: config})
		l.Partitions[name] = partitions
	}
}
