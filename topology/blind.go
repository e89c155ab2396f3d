package topology

import "github.com/millrace-streams/millrace/serde"

// A source need not decode values that no node looks at, as those of records that are counted. It must not leave out a
// decoding that might fail, though: a bad record is to be noticed. So it is for serdes that take whatever comes.

// sees reports whether a child of n looks at values.
func (n *node) sees() bool {
	for _, c := range n.children {
		if !c.blind {
			return true
		}
	}
	return len(n.children) == 0
}

// unlessBlind returns the serde that a source is to decode values with.
func unlessBlind[V any](n *node, values serde.Serde[V]) serde.Serde[V] {
	if n.sees() || any(values) != any(serde.String) && any(values) != any(serde.Bytes) {
		return values
	}
	return unseen[V]{values}
}

// unseen decodes nothing.
type unseen[V any] struct{ serde.Serde[V] }

// Decode returns the zero value.
func (unseen[V]) Decode([]byte) (v V, err error) { return v, nil }
