package processor

import "slices"

// Kept is a number of a node's that survives a restart: it is committed in the metadata of the task's positions, together
// with what the node has written. It only grows. What a failed step has done to it is undone.
type Kept struct {
	name      string
	value     int64
	marked    int64
	committed int64 // as of the latest Prepare
}

// Keep returns the task's number of that name, Unknown if it was never advanced. Nodes call it while they are bound, each
// with a name that no other node of the sub-topology uses; it takes space in every commit, so there should be few.
func (t *Task) Keep(name string) *Kept {
	value := int64(Unknown)
	for _, in := range t.inherited {
		if in.name == name {
			value = max(value, in.value)
		}
	}
	k := &Kept{name: name, value: value, marked: value, committed: value}
	t.kept = append(t.kept, k)
	return k
}

// Value returns the number.
func (k *Kept) Value() int64 { return k.value }

// Advance raises the number; a lower one is ignored.
func (k *Kept) Advance(to int64) { k.value = max(k.value, to) }

// keptMoved reports whether a number has grown since the latest Prepare.
func (t *Task) keptMoved() bool {
	return slices.ContainsFunc(t.kept, func(k *Kept) bool { return k.value != k.committed })
}
