package processor

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Kept is a number of a node's that survives a restart: it is committed in the metadata of the task's positions, together
// with what the node has written. What a failed step has done to it is undone.
type Kept struct {
	name      string
	value     int64
	marked    int64
	committed int64 // as of the latest Prepare
}

// Keep returns the task's number of that name, Unknown if it was never set. Nodes call it while they are bound, each with a
// name that no other node of the sub-topology uses; it takes space in every commit, of which brokers allow 4,096 bytes
// (offset.metadata.max.bytes), so there should be few. A name that contains an @ is shortened if it is long; others are written
// as they are, for Kafka Streams to read.
func (t *Task) Keep(name string) *Kept {
	name = shortened(name)
	value, known := t.inherited[name]
	if !known {
		value = Unknown
	}
	k := &Kept{name: name, value: value, marked: value, committed: value}
	t.kept = append(t.kept, k)
	return k
}

// shortened bounds the length of a name.
func shortened(name string) string {
	const longest, head = 32, 15
	if len(name) <= longest || !strings.Contains(name, "@") {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s@%016x", name[:head], h.Sum64())
}

// Value returns the number.
func (k *Kept) Value() int64 { return k.value }

// Set changes the number. Unknown is not kept.
func (k *Kept) Set(to int64) { k.value = to }

// Advance raises the number; a lower one is ignored.
func (k *Kept) Advance(to int64) { k.value = max(k.value, to) }

// keptMoved reports whether a number has changed since the latest Prepare.
func (t *Task) keptMoved() bool {
	return slices.ContainsFunc(t.kept, func(k *Kept) bool { return k.value != k.committed })
}

// commitCount names the number of the task's commits, which is kept beside the nodes' numbers: positions of different commits
// hold different numbers, and the newest count.
const commitCount = "@commits"

// countCommit is called by Prepare before it names positions.
func (t *Task) countCommit() {
	if len(t.kept)+len(t.opt.Marks) > 0 {
		t.commits++
	}
}

// inherit takes over what the nodes of the task's former life have kept, as of their last commit. What Kafka Streams has
// written is not counted: of its numbers, the highest count.
func (t *Task) inherit(starts []Start) {
	var all []string
	for _, s := range starts {
		all = append(all, s.Metadata)
	}
	t.inherited, t.commits = newestKept(all)
}

// newestKept returns the entries of the newest commit among the metadata of a task's positions, and its number, Unknown if
// none has one.
func newestKept(metadata []string) (kept map[string]int64, newest int64) {
	kept, newest = map[string]int64{}, Unknown
	for _, m := range metadata {
		entries := decodeKept(m)
		commits := countOf(entries)
		if commits < newest {
			continue
		}
		if commits > newest {
			newest = commits
			clear(kept)
		}
		for _, e := range entries {
			kept[e.name] = max(kept[e.name], e.value)
		}
	}
	return kept, newest
}

// countOf returns the number of the commit that the entries are of, Unknown if it has none.
func countOf(entries []keptEntry) int64 {
	if i := slices.IndexFunc(entries, func(e keptEntry) bool { return e.name == commitCount }); i >= 0 {
		return entries[i].value
	}
	return Unknown
}
