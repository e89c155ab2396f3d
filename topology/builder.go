package topology

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
)

// Builder collects the declaration of a topology. It is not safe for concurrent use, and must not be used after Build.
type Builder struct {
	nodes   []*node // parents before their children
	names   map[string]*node
	topics  map[string]*topicUse
	reparts map[string]*node // the source of each repartition topic
	stores  map[string]*storeUse
	globals []*processor.GlobalSpec
	errs    []error
}

// node is a node under construction.
type node struct {
	processor.Node
	at       site
	parents  []*node
	children []*node
	rekeyed  bool // the key may have changed since the last topic
	clash    bool // its name is taken, and its children's may be for that reason alone
	table    tableNode
	blind    bool          // it does not look at the values of its records, nor do others through it
	windowed bool          // it aggregates in windows
	closes   time.Duration // how long after their ends these are closed
}

// topicUse is what is known of a topic of the broker that the topology reads or writes.
type topicUse struct {
	typ    reflect.Type // Topic[K, V]
	at     site         // of the first use
	source *node
}

// storeUse is what is known of a store.
type storeUse struct {
	declaration store.Declaration
	at          site
	owner       *node // the table that maintains it
	users       []*node
	global      bool // it is that of a global table
	byKey       bool // its keys are those of the records that reach its owner
	free        bool // a processor of the application's own may write what it likes
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{
		names: map[string]*node{}, topics: map[string]*topicUse{}, reparts: map[string]*node{}, stores: map[string]*storeUse{},
	}
}

// fail records a mistake. It is reported by Build.
func (b *Builder) fail(at site, node string, format string, args ...any) {
	b.errs = append(b.errs, &BuildError{File: at.file, Line: at.line, Node: node, Err: fmt.Errorf(format, args...)})
}

// child adds a node below parents. Without a name of its own it is named after the first parent and op.
func (b *Builder) child(op string, s settings, parents ...*node) *node {
	n := &node{at: caller(), parents: parents}
	n.Name = s.name
	if s.name == "" {
		n.Name = parents[0].Name + "." + op
	} else {
		b.checkNamed(n)
	}
	b.below(n, s.name == "")
	return n
}

// part adds a node of an operator that has several. whole is the operator's name, given by the application or not.
func (b *Builder) part(whole string, given bool, op string, parents ...*node) *node {
	n := &node{at: caller(), parents: parents, clash: b.names[whole] != nil}
	n.Name = whole + "." + op
	b.below(n, !given)
	return n
}

// below adds a node that has its name, which may be made of the parents' names.
func (b *Builder) below(n *node, named bool) {
	for _, p := range n.parents {
		n.rekeyed = n.rekeyed || p.rekeyed
		n.clash = n.clash || named && p.clash
		p.children = append(p.children, n)
	}
	b.add(n)
}

// wholeName returns the name of an operator that has several nodes, and whether the application gave it.
func wholeName(s settings, parent *node, op string) (name string, given bool) {
	if s.name != "" {
		return s.name, true
	}
	return parent.Name + "." + op, false
}

// whole adds the node of an operator that bears its name, below its other nodes.
func (b *Builder) whole(name string, given bool, parents ...*node) *node {
	n := &node{at: caller(), parents: parents}
	n.Name = name
	if given {
		b.checkNamed(n)
	}
	b.below(n, !given)
	return n
}

// checkNamed checks a name that the application gave to a node.
func (b *Builder) checkNamed(n *node) {
	if err := checkName(n.Name); err != nil {
		b.fail(n.at, n.Name, "%w", err)
	}
}

// add registers a node under its name.
func (b *Builder) add(n *node) {
	b.nodes = append(b.nodes, n)
	first := b.names[n.Name]
	if first == nil {
		b.names[n.Name] = n
		return
	}
	if !n.clash {
		b.fail(n.at, n.Name, "the node at %s has the same name; give one of them another with topology.Named", first.at)
	}
	n.clash = true
}

// need records a mistake if a function is missing.
func (n *node) need(b *Builder, ok bool, what string) {
	if !ok {
		b.fail(n.at, n.Name, "%s is nil", what)
	}
}

// keep connects a node to the store that it maintains under the keys of the records that reach it.
func (b *Builder) keep(n *node, d store.Declaration) {
	b.use(n, d, true)
	if u := b.stores[nameOf(d)]; u != nil {
		u.byKey = true
	}
}

// reach connects a node of the application's own to a store that it names. A global table's it can only read.
func (b *Builder) reach(n *node, d store.Declaration) {
	u := b.stores[nameOf(d)]
	if u == nil || !u.global {
		b.use(n, d, false)
		if u = b.stores[nameOf(d)]; u != nil {
			u.free = true
		}
		return
	}
	if !sameDeclaration(u.declaration, d) {
		b.fail(n.at, n.Name, "store %q is declared differently at %s", d.Name(), u.at)
	}
	if !slices.Contains(n.Globals, d.Name()) {
		n.Globals = append(n.Globals, d.Name())
	}
}

// nameOf returns the name of a declaration, which no store has if it is nil.
func nameOf(d store.Declaration) string {
	if isNil(d) {
		return ""
	}
	return d.Name()
}

func isNil(d store.Declaration) bool {
	return d == nil || reflect.ValueOf(d).Kind() == reflect.Pointer && reflect.ValueOf(d).IsNil()
}

// use connects a node to a store. An owner is a table, of which a store has at most one.
func (b *Builder) use(n *node, d store.Declaration, owner bool) {
	if isNil(d) {
		b.fail(n.at, n.Name, "the store declaration is nil")
		return
	}
	name := d.Name()
	u := b.stores[name]
	if u == nil {
		u = &storeUse{declaration: d, at: n.at}
		b.stores[name] = u
		if err := checkName(name); err != nil {
			b.fail(n.at, n.Name, "store %q: %w", name, err)
		}
		if err := d.Validate(); err != nil {
			b.fail(n.at, n.Name, "%w", err)
		}
	} else if !sameDeclaration(u.declaration, d) {
		b.fail(n.at, n.Name, "store %q is declared differently at %s", name, u.at)
	}
	if u.global {
		b.fail(n.at, n.Name, "store %q is that of the global table at %s", name, u.at)
		return
	}
	if owner && u.owner != nil {
		b.fail(n.at, n.Name, "store %q is already maintained by the node %q at %s", name, u.owner.Name, u.owner.at)
	} else if owner {
		u.owner = n
	}
	if !slices.Contains(n.Stores, name) {
		u.users = append(u.users, n)
		n.Stores = append(n.Stores, name)
	}
}

// sameDeclaration compares types, and the declared contents as far as Go can compare them.
func sameDeclaration(a, b store.Declaration) bool {
	va, vb := reflect.Indirect(reflect.ValueOf(a)), reflect.Indirect(reflect.ValueOf(b))
	if va.Type() != vb.Type() {
		return false
	}
	return !va.Comparable() || !vb.Comparable() || va.Equal(vb)
}

// topicUsed registers a use of a topic by the node n. What has no serde, an illegal name, or two different types is a mistake.
func topicUsed[K, V any](b *Builder, n *node, t Topic[K, V]) *topicUse {
	n.need(b, t.keys != nil, fmt.Sprintf("the key serde of topic %q", t.name))
	n.need(b, t.values != nil, fmt.Sprintf("the value serde of topic %q", t.name))
	typ := reflect.TypeFor[Topic[K, V]]()
	u := b.topics[t.name]
	switch {
	case u == nil:
		u = &topicUse{typ: typ, at: n.at}
		b.topics[t.name] = u
		if err := checkName(t.name); err != nil {
			b.fail(n.at, n.Name, "topic %q: %w", t.name, err)
		}
	case u.typ != typ:
		b.fail(n.at, n.Name, "topic %q is declared as %s here and as %s at %s", t.name, typ, u.typ, u.at)
	}
	return u
}

// Build checks the whole declaration. The error joins one *BuildError for each mistake, in the order of the calls.
func (b *Builder) Build() (*Topology, error) {
	errs := b.errs
	if len(b.nodes) == 0 {
		at := caller()
		errs = append(errs, &BuildError{File: at.file, Line: at.line, Err: errors.New("the topology reads no topic")})
	}
	errs = append(errs, b.loops()...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Topology{specs: b.specs(), globals: b.globals}, nil
}
