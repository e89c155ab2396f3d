package topology

import "github.com/millrace-streams/millrace/processor"

// Merge joins streams into one. The records of each keep their order; there is none between streams. Streams of different
// builders, or a stream merged with itself, are mistakes.
func Merge[K, V any](first Stream[K, V], others ...Stream[K, V]) Stream[K, V] {
	return mergeAs(settings{}, first, others)
}

// MergeAs is Merge with a name for the node, as with Named.
func MergeAs[K, V any](name string, first Stream[K, V], others ...Stream[K, V]) Stream[K, V] {
	return mergeAs(settings{name: name}, first, others)
}

func mergeAs[K, V any](set settings, first Stream[K, V], others []Stream[K, V]) Stream[K, V] {
	parents, seen := []*node{first.n}, map[*node]bool{first.n: true}
	foreign, twice := false, (*node)(nil)
	for _, s := range others {
		switch {
		case s.b != first.b:
			foreign = true
		case seen[s.n]:
			twice = s.n
		default:
			seen[s.n] = true
			parents = append(parents, s.n)
		}
	}
	n := first.b.child("merge", set, parents...)
	if foreign {
		first.b.fail(n.at, n.Name, "the merged streams belong to different builders")
	}
	if twice != nil {
		first.b.fail(n.at, n.Name, "the stream %q is merged with itself", twice.Name)
	}
	n.Bind = passOn[K, V]
	return Stream[K, V]{first.b, n}
}

func passOn[K, V any](b *processor.Binding) (any, error) {
	return processor.FanOut[K, V](b), nil
}

// Branch is a name and a condition, for Split.
type Branch[K, V any] struct {
	name string
	when func(K, V) bool
}

// When returns a branch for the records for which the condition is true.
func When[K, V any](name string, condition func(K, V) bool) Branch[K, V] {
	return Branch[K, V]{name, condition}
}

// Branches are the streams into which Split has split a stream.
type Branches[K, V any] struct {
	b     *Builder
	split *node
	named map[string]*node
	rest  *node
}

// Split sends each record to the first branch whose condition is true, and to the rest if there is none. Tombstones go to
// every branch and to the rest, since each may have seen a value of the key. A branch that is not used drops its records.
// The node of a branch is named after Split's and the branch, that of the rest "default".
func Split[K, V any](s Stream[K, V], branches ...Branch[K, V]) Branches[K, V] {
	return splitAs(settings{}, s, branches)
}

// SplitAs is Split with a name for the node, as with Named.
func SplitAs[K, V any](name string, s Stream[K, V], branches ...Branch[K, V]) Branches[K, V] {
	return splitAs(settings{name: name}, s, branches)
}

func splitAs[K, V any](set settings, s Stream[K, V], branches []Branch[K, V]) Branches[K, V] {
	n := s.b.child("split", set, s.n)
	out := Branches[K, V]{b: s.b, split: n, named: map[string]*node{}}
	conditions := make([]func(K, V) bool, 0, len(branches))
	for _, br := range branches {
		n.need(s.b, br.when != nil, "the condition of branch \""+br.name+"\"")
		if err := checkName(br.name); err != nil {
			s.b.fail(n.at, n.Name, "branch %q: %w", br.name, err)
		}
		conditions = append(conditions, br.when)
		out.named[br.name] = s.b.child(br.name, settings{}, n)
		out.named[br.name].Bind = passOn[K, V]
	}
	out.rest = s.b.child("default", settings{}, n)
	out.rest.Bind = passOn[K, V]
	n.Bind = func(b *processor.Binding) (any, error) { return bindSplit[K, V](b, conditions), nil }
	return out
}

func bindSplit[K, V any](b *processor.Binding, conditions []func(K, V) bool) processor.Emit[K, V] {
	all, rest := processor.FanOut[K, V](b), processor.Child[K, V](b, len(conditions))
	emits := make([]processor.Emit[K, V], len(conditions))
	for i := range conditions {
		emits[i] = processor.Child[K, V](b, i)
	}
	return func(r processor.Record[K, V]) error {
		if r.NullValue {
			return all(r)
		}
		for i, when := range conditions {
			if when(r.Key, r.Value) {
				return emits[i](r)
			}
		}
		return rest(r)
	}
}

// Branch returns the stream of a branch. A name that Split was not given is a mistake.
func (s Branches[K, V]) Branch(name string) Stream[K, V] {
	n := s.named[name]
	if n == nil {
		s.b.fail(caller(), s.split.Name, "there is no branch %q", name)
		n = s.rest
	}
	return Stream[K, V]{s.b, n}
}

// Rest returns the stream of the records that no branch took.
func (s Branches[K, V]) Rest() Stream[K, V] { return Stream[K, V]{s.b, s.rest} }
