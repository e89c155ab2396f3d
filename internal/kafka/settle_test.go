package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// world is what brokers say in a test about a task with the inputs a-1 and b-1 and a store in log-1.
type world struct {
	cfg Config
	on  ground
}

func at(topic string) processor.TopicPartition {
	return processor.TopicPartition{Topic: topic, Partition: 1}
}

var stateful = TaskInfo{
	ID: processor.TaskID{Partition: 1}, Inputs: []processor.TopicPartition{at("a"), at("b")},
	Changelogs: []Changelog{{Store: "store", TopicPartition: at("log")}},
}

func newWorld() *world {
	w := &world{cfg: Config{App: "app"}, on: ground{positions: map[processor.TopicPartition]committed{}, logs: map[processor.TopicPartition]Range{}, topics: map[string]topicState{}}}
	for i, topic := range []string{"a", "b", "log"} {
		w.on.logs[at(topic)] = Range{10, 100}
		w.topic(topic, byte(i+1), 4)
	}
	w.forget("a", "b")
	return w
}

// topic says which topic it is, 0 for brokers that do not tell.
func (w *world) topic(name string, id byte, partitions int32) {
	w.on.topics[name] = topicState{sarama.Uuid{2: id, 9: id}, partitions}
}

func (w *world) forget(topics ...string) {
	for _, topic := range topics {
		w.on.positions[at(topic)] = committed{offset: -1}
	}
}

// commit commits an offset, with the marks of the topics as they are.
func (w *world) commit(topic string, offset int64) {
	w.on.positions[at(topic)] = committed{offset: offset, metadata: processor.Remark("", marksOf(&stateful, w.on))}
}

// look returns what is found, as text: where the inputs are to begin anew and what is lost.
func (w *world) look() string {
	g := &group{cluster: &Cluster{cfg: w.cfg}}
	v := g.examine(&stateful, w.on)
	var found []string
	for _, p := range v.starts {
		found = append(found, fmt.Sprintf("%s=%d", p.Topic, p.Offset))
	}
	for verb, losses := range map[string][]error{"refused": v.refused, "passed": v.passed} {
		for _, loss := range losses {
			var input *LostInputError
			var offsets *LostOffsetsError
			var state *runtime.LostStateError
			switch {
			case errors.As(loss, &input):
				found = append(found, fmt.Sprintf("%s %s lost %d", verb, input.Topic, input.Lost()))
			case errors.As(loss, &offsets):
				found = append(found, fmt.Sprintf("%s offsets of %d", verb, len(offsets.Partitions)))
			case errors.As(loss, &state):
				found = append(found, fmt.Sprintf("%s state of %s, %d positions", verb, state.Store, len(state.Committed)))
			}
		}
	}
	return strings.Join(found, ", ")
}

func TestGround(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"all is well":        {func(w *world) { w.commit("a", 50); w.commit("b", 50) }, ""},
		"at the bounds":      {func(w *world) { w.commit("a", 10); w.commit("b", 100) }, ""},
		"brand-new":          {func(w *world) { w.on.logs[at("log")] = Range{0, 0} }, "a=10, b=10"},
		"offsets are gone":   {func(*world) {}, "a=10, b=10, refused offsets of 2"},
		"one of them is":     {func(w *world) { w.commit("a", 50) }, "a=50, b=10, refused offsets of 1"},
		"emptied by age":     {func(w *world) { w.on.logs[at("log")] = Range{100, 100} }, "a=10, b=10, refused offsets of 2"},
		"set by an operator": {func(w *world) { w.on.positions[at("a")] = committed{offset: 20} }, "a=20, b=10"},
		"an input is added": {func(w *world) {
			b := w.on.topics["b"]
			delete(w.on.topics, "b")
			w.on.positions[at("a")] = committed{offset: 50, metadata: processor.Remark("", []processor.Mark{w.on.topics["a"].mark("a"), w.on.topics["log"].mark("log")})}
			w.on.topics["b"] = b
		}, "a=50, b=10"},
		"a store is added": {func(w *world) {
			w.on.positions[at("a")] = committed{offset: 50, metadata: processor.Remark("", []processor.Mark{w.on.topics["a"].mark("a")})}
			w.on.positions[at("b")] = w.on.positions[at("a")]
			w.on.logs[at("log")] = Range{0, 0}
		}, ""},
		"changelog is another": {func(w *world) { w.commit("a", 50); w.commit("b", 50); w.topic("log", 9, 4) }, "a=50, b=50, refused state of store, 2 positions"},
		"go on without": {func(w *world) {
			w.commit("a", 50)
			w.commit("b", 50)
			w.topic("log", 9, 4)
			w.cfg.LostState = EmptyLostState
		}, "a=50, b=50, passed state of store, 2 positions"},
		"no ids before": {func(w *world) {
			w.topic("log", 0, 4)
			w.commit("a", 50)
			w.commit("b", 50)
			w.topic("log", 9, 4)
		}, ""},
		"below the start":     {func(w *world) { w.commit("a", 3); w.commit("b", 50) }, "a=10, b=50, refused a lost 7"},
		"beyond the end":      {func(w *world) { w.commit("a", 50); w.commit("b", 101) }, "a=50, b=10, refused b lost -1"},
		"input is another":    {func(w *world) { w.commit("a", 50); w.commit("b", 50); w.topic("b", 9, 4) }, "a=50, b=10, refused b lost -1"},
		"on with the oldest":  {func(w *world) { w.commit("a", 3); w.commit("b", 50); w.cfg.LostInput = EarliestLostInput }, "a=10, b=50, passed a lost 7"},
		"on with what comes":  {func(w *world) { w.commit("a", 3); w.commit("b", 50); w.cfg.LostInput = LatestLostInput }, "a=100, b=50, passed a lost 7"},
		"latest":              {func(w *world) { w.cfg.OffsetReset = Latest; w.on.logs[at("log")] = Range{0, 0} }, "a=100, b=100"},
		"latest, added to it": {addedPartition, "a=10, b=100"},
	} {
		w := newWorld()
		c.change(w)
		if got := w.look(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// addedPartition makes partition 1 of topic a younger than partition 0.
func addedPartition(w *world) {
	w.cfg.OffsetReset = Latest
	w.on.logs[at("log")] = Range{0, 0}
	w.topic("a", 1, 1)
	w.on.positions[processor.TopicPartition{Topic: "a"}] = committed{offset: 50, metadata: processor.Remark("", marksOf(&stateful, w.on))}
	w.topic("a", 1, 2)
}

// TestMarksKeepTheFirstCount: positions that are committed later do not make an added partition look old.
func TestMarksKeepTheFirstCount(t *testing.T) {
	t.Parallel()
	w := newWorld()
	addedPartition(w)
	w.commit("a", 10)
	w.on.positions[processor.TopicPartition{Topic: "a"}] = committed{offset: 60, metadata: processor.Remark("", marksOf(&stateful, w.on))}
	w.topic("a", 1, 3)
	if n := w.on.first("a"); n != 1 {
		t.Errorf("topic a had %d partitions at first", n)
	}
	w.topic("a", 7, 3) // another topic: what was known of the old one is void
	if n := w.on.first("a"); n != 0 {
		t.Errorf("the new topic a had %d partitions at first", n)
	}
}

// TestMarksAreFewOrNone: metadata has a limit.
func TestMarksAreFewOrNone(t *testing.T) {
	t.Parallel()
	task := TaskInfo{}
	on := ground{topics: map[string]topicState{}}
	for i := range maxMarks + 1 {
		name := fmt.Sprintf("topic-%d", i)
		on.topics[name] = topicState{sarama.Uuid{1}, 3}
		task.Inputs = append(task.Inputs, processor.TopicPartition{Topic: name})
		marks := marksOf(&task, on)
		if n := len(processor.Remark("", marks)); i < maxMarks && len(marks) != i+1 || i == maxMarks && marks != nil || n > 3000 {
			t.Fatalf("%d topics: %d marks, %d bytes", i+1, len(marks), n)
		}
	}
}
