package topology_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

const app = "app"

// rig runs all tasks of a topology over memory stores, and plays the broker: what a task writes to a repartition topic
// comes to the tasks that read it.
type rig struct {
	layout *topology.Layout
	tasks  map[processor.TaskID]*processor.Task
	reader map[processor.TopicPartition]*processor.Task
	stores map[processor.TaskID]map[string]*store.Layered
	next   map[processor.TopicPartition]int64
	out    map[string][]processor.Output
	global map[string]*processor.Global // by topic
	spread int32
}

// start builds the topology and opens its tasks. Topics that counts does not name have one partition.
func start(b *topology.Builder, opt processor.Options, counts map[string]int32) *rig {
	top := must(b.Build())
	all := map[string]int32{}
	for _, topic := range append(top.SourceTopics(), top.SinkTopics()...) {
		if !topic.Internal {
			all[topic.Name] = max(counts[topic.Name], 1)
		}
	}
	for _, g := range top.Globals() {
		all[g.Topic.Name] = max(counts[g.Topic.Name], 1)
	}
	if opt.Policy.DeadLetterTopic != "" {
		all[opt.Policy.DeadLetterTopic] = 1
	}
	r := &rig{
		layout: must(top.Layout(app, all, opt.Policy.DeadLetterTopic)),
		tasks:  map[processor.TaskID]*processor.Task{}, reader: map[processor.TopicPartition]*processor.Task{},
		stores: map[processor.TaskID]map[string]*store.Layered{}, next: map[processor.TopicPartition]int64{},
		out: map[string][]processor.Output{},
	}
	opt.App, opt.Partitions = app, func(topic string) int32 { return r.layout.Partitions[topic] }
	r.global, opt.Globals = map[string]*processor.Global{}, map[string]processor.GlobalRows{}
	for _, spec := range top.Globals() {
		g := processor.NewGlobal(spec, store.LayersOf(spec.Declaration, memory.New()), opt)
		r.global[spec.Topic.Name], opt.Globals[spec.Name] = g, g
	}
	for _, id := range r.layout.Tasks {
		r.open(id, top.Specs()[id.Subtopology], opt)
	}
	return r
}

func (r *rig) open(id processor.TaskID, spec *processor.Spec, opt processor.Options) {
	stores := map[string]*store.Layered{}
	for _, s := range spec.Stores {
		stores[s.Name] = store.LayersOf(s.Declaration, memory.New())
	}
	var starts []processor.Start
	for _, tp := range r.layout.Inputs[id] {
		starts = append(starts, processor.Start{Position: processor.Position{TopicPartition: tp}})
	}
	task := must(processor.NewTask(id, spec, stores, starts, 0, opt))
	for _, tp := range r.layout.Inputs[id] {
		r.reader[tp] = task
	}
	r.tasks[id], r.stores[id] = task, stores
}

// rec is an input record; key and value are encoded already, nil is null.
type rec struct {
	key, value []byte
	ts         int64
	headers    []processor.Header
}

func text(key, value string, ts int64) rec {
	return rec{key: []byte(key), value: []byte(value), ts: ts}
}

// send hands the records of a topic to its tasks, by key.
func (r *rig) send(topic string, records ...rec) {
	n := r.layout.Partitions[topic]
	for _, in := range records {
		p := r.spread % n
		if in.key != nil {
			p = processor.PartitionForKey(in.key, n)
		} else {
			r.spread++
		}
		r.deliver(processor.TopicPartition{Topic: topic, Partition: p}, in)
	}
}

func (r *rig) deliver(tp processor.TopicPartition, in rec) {
	offset := r.next[tp]
	r.next[tp]++
	raw := processor.Raw{Key: in.key, Value: in.value, Timestamp: in.ts, Headers: in.headers, Offset: offset}
	if g := r.global[tp.Topic]; g != nil {
		must(0, g.Apply(tp, []processor.Raw{raw}))
		return
	}
	r.reader[tp].Enqueue(tp, []processor.Raw{raw}, offset+1, 1, false)
}

// run processes and commits until nothing moves any more.
func (r *rig) run() error {
	for moved := true; moved; {
		moved = false
		for _, id := range r.layout.Tasks {
			task := r.tasks[id]
			if _, err := task.Run(0, 1<<20); err != nil {
				return err
			}
			if task.Dirty() {
				moved = true
				if err := r.commit(id, task); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// step processes without a commit.
func (r *rig) step() {
	for _, id := range r.layout.Tasks {
		must(r.tasks[id].Run(0, 1<<20))
	}
}

func (r *rig) commit(id processor.TaskID, task *processor.Task) error {
	var c processor.Commit
	if err := task.Prepare(&c); err != nil {
		return err
	}
	for o := range c.Outputs() {
		tp := processor.TopicPartition{Topic: o.Topic, Partition: o.Partition}
		if r.reader[tp] != nil {
			r.deliver(tp, rec{o.Key, o.Value, o.Timestamp, o.Headers})
		}
		r.out[o.Topic] = append(r.out[o.Topic], *o)
	}
	for _, l := range r.stores[id] {
		if l.Dirty() {
			panic("a store is dirty after Prepare")
		}
		l.Committed(-1)
	}
	return nil
}

// read takes what was written to a topic and committed, as "key=value@timestamp" with the headers behind.
func read[K, V any](r *rig, topic topology.Topic[K, V]) (lines []string) {
	for _, o := range r.out[topic.Name()] {
		line := show(topic.KeySerde(), o.Key) + "=" + show(topic.ValueSerde(), o.Value) + fmt.Sprintf("@%d", o.Timestamp)
		for _, h := range o.Headers {
			line += fmt.Sprintf(" %s:%s", h.Key, h.Value)
		}
		lines = append(lines, line)
	}
	delete(r.out, topic.Name())
	return lines
}

func show[T any](s serde.Serde[T], data []byte) string {
	if data == nil {
		return "null"
	}
	return fmt.Sprint(must(s.Decode(data)))
}

// get reads a row over all tasks; "none" when there is none.
func get[K, V any](r *rig, kv *store.KeyValue[K, V], key K) string {
	k := must(kv.KeySerde().Append(nil, key))
	for _, stores := range r.stores {
		if l := stores[kv.Name()]; l != nil {
			if v, ts, ok, err := l.Get(nil, k); err != nil || ok {
				return fmt.Sprintf("%v@%d", must(kv.ValueSerde().Decode(v)), ts)
			}
		}
	}
	return "none"
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

var update = flag.Bool("update", false, "write the golden files in testdata")

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and read the diff); got:\n%s", path, got)
	}
}
