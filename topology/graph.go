package topology

import (
	"slices"

	"github.com/millrace-streams/millrace/processor"
)

// loops finds sinks that write a topic which the stream comes from: their records would go round for ever.
func (b *Builder) loops() (errs []error) {
	for _, n := range b.nodes {
		if n.Kind != processor.KindSource || n.Topic.Internal {
			continue
		}
		for _, sink := range b.reachable(n) {
			if sink.Kind == processor.KindSink && sink.Topic == n.Topic {
				loop := Builder{}
				loop.fail(sink.at, sink.Name, "topic %q is written by a stream that comes from it, read at %s", n.Topic.Name, n.at)
				errs = append(errs, loop.errs...)
			}
		}
	}
	return errs
}

// reachable returns all nodes below n, in the order of declaration, through repartition topics too.
func (b *Builder) reachable(n *node) (below []*node) {
	seen := map[*node]bool{n: true}
	for _, n := range b.nodes { // parents and writers come first
		if !seen[n] {
			continue
		}
		below = append(below, n)
		for _, c := range n.children {
			seen[c] = true
		}
		if n.Kind == processor.KindSink && n.Topic.Internal {
			seen[b.reparts[n.Topic.Name]] = true
		}
	}
	return below
}

// specs cuts the graph into sub-topologies, numbered in the order of their first sources.
func (b *Builder) specs() []*processor.Spec {
	var specs []*processor.Spec
	placed := map[*node]bool{}
	for _, first := range b.nodes {
		if placed[first] {
			continue
		}
		part := b.connected(first)
		members := make([]*node, 0, len(part))
		for _, n := range b.nodes {
			if part[n] {
				placed[n] = true
				members = append(members, n)
			}
		}
		specs = append(specs, b.spec(int32(len(specs)), members))
	}
	return specs
}

// connected returns all nodes that edges and stores connect with n.
func (b *Builder) connected(n *node) map[*node]bool {
	part, todo := map[*node]bool{n: true}, []*node{n}
	visit := func(nodes []*node) {
		for _, n := range nodes {
			if !part[n] {
				part[n] = true
				todo = append(todo, n)
			}
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		visit(n.parents)
		visit(n.children)
		for _, s := range n.Stores {
			visit(b.stores[s].users)
		}
	}
	return part
}

// spec makes a sub-topology of nodes that are in the order of declaration, parents before children.
func (b *Builder) spec(id int32, nodes []*node) *processor.Spec {
	spec := &processor.Spec{ID: id}
	index := map[*node]int{}
	for i, n := range nodes {
		index[n] = i
	}
	for _, n := range nodes {
		for _, c := range n.children {
			n.Children = append(n.Children, index[c])
		}
		for _, s := range n.Stores {
			if !slices.ContainsFunc(spec.Stores, func(known processor.StoreSpec) bool { return known.Name == s }) {
				u := b.stores[s]
				spec.Stores = append(spec.Stores, processor.StoreSpec{Name: s, Declaration: u.declaration, ByKey: u.byKey && !u.free, RecordKeys: u.byKey})
			}
		}
		for _, g := range n.Globals {
			if !slices.Contains(spec.Globals, g) {
				spec.Globals = append(spec.Globals, g)
			}
		}
		spec.Nodes = append(spec.Nodes, &n.Node)
	}
	for i := range spec.Stores {
		s := &spec.Stores[i]
		s.ByKey = s.ByKey && !slices.ContainsFunc(sourcesOf(spec, s.Name), foreignlyPartitioned)
	}
	return spec
}

// foreignlyPartitioned tells whether the records of a topic may be in other partitions than those that Kafka's clients
// choose for their keys: somebody else writes it, or they go where another record was.
func foreignlyPartitioned(t processor.Topic) bool { return !t.Internal || t.Suffix != "" }
