package topology

import (
	"bytes"
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// Encoded is a declaration that says how keys and values are encoded: a Topic, a Repartition, or a store.
type Encoded[K, V any] interface {
	KeySerde() serde.Serde[K]
	ValueSerde() serde.Serde[V]
}

// ForeignKey declares what the join of two tables by a foreign key needs: topics for subscriptions to foreign rows and for
// the answers, and a store of subscriptions. It is used in one join.
type ForeignKey[K, V, FK, FV any] struct {
	name    string
	keys    serde.Serde[K]
	values  serde.Serde[V]
	foreign serde.Serde[FK]
	others  serde.Serde[FV]
	choose  func(FK, int32) int32
}

// NewForeignKey declares a foreign key. left and right say how the keys and values of the tables are encoded. The names are
// durable, and those that Kafka Streams gives with TableJoined.as(name): the topics
// <app>-<name>-subscription-registration-topic and <app>-<name>-subscription-response-topic, which the application creates,
// and the store <name>-subscription-store.
func NewForeignKey[K, V, FK, FV any](name string, left Encoded[K, V], right Encoded[FK, FV]) ForeignKey[K, V, FK, FV] {
	f := ForeignKey[K, V, FK, FV]{name: name}
	if left != nil {
		f.keys, f.values = left.KeySerde(), left.ValueSerde()
	}
	if right != nil {
		f.foreign, f.others = right.KeySerde(), right.ValueSerde()
	}
	return f
}

// Name returns the name that was declared.
func (f ForeignKey[K, V, FK, FV]) Name() string { return f.name }

// PartitionedBy returns the foreign key for a right table whose topic is not partitioned by its keys as Kafka's Java client
// does it: fn gets a key and the number n of partitions, and returns one of 0 to n-1. How the left table's topic is
// partitioned does not matter, since answers go to the partition that the row came from.
func (f ForeignKey[K, V, FK, FV]) PartitionedBy(fn func(key FK, n int32) int32) ForeignKey[K, V, FK, FV] {
	f.choose = fn
	return f
}

// JoinForeign joins each row of the left table with the row of the right one that it refers to: key returns the right row's
// key, or false if the row refers to none. There is a row for each left row whose right row exists. Changes of either side
// are seen, with the later time of both when the left row has changed, and the right row's time when that has.
//
// The tables need not be partitioned alike: what is asked and answered goes through two topics, so that the result lags
// behind. An answer to a row that has changed since is dropped. A deletion may be forwarded for a row that is not there. If
// a later operator has to know old values or look up rows, the result needs a store: see Materialized.
func JoinForeign[K, V, FK, FV, R any](
	left KTable[K, V], right KTable[FK, FV], by ForeignKey[K, V, FK, FV], key func(K, V) (FK, bool), join func(V, FV) R,
	opts ...DerivedOption,
) KTable[K, R] {
	j := foreignJoin[K, V, FK, FV, R]{by: by, key: key, fn: func(v V, fv FV, _ bool) R { return join(v, fv) }}
	return j.declare(left, right, join != nil, opts)
}

// LeftJoinForeign is JoinForeign with a row for each left row; exists is false, and the right value the zero value, if it
// refers to none or to one that does not exist.
func LeftJoinForeign[K, V, FK, FV, R any](
	left KTable[K, V], right KTable[FK, FV], by ForeignKey[K, V, FK, FV], key func(K, V) (FK, bool),
	join func(left V, right FV, exists bool) R, opts ...DerivedOption,
) KTable[K, R] {
	j := foreignJoin[K, V, FK, FV, R]{by: by, key: key, fn: join, left: true}
	return j.declare(left, right, join != nil, opts)
}

type foreignJoin[K, V, FK, FV, R any] struct {
	by   ForeignKey[K, V, FK, FV]
	left bool
	key  func(K, V) (FK, bool)
	fn   func(V, FV, bool) R
}

// declare adds five nodes: the left table's changes become subscriptions; these are kept and answered; the right table's
// changes are answered to the subscribers; answers go back; and they become the rows of the result.
func (j foreignJoin[K, V, FK, FV, R]) declare(left KTable[K, V], right KTable[FK, FV], ok bool, opts []DerivedOption) KTable[K, R] {
	b, set := left.b, derivedOptions(opts)
	name, given := wholeName(set, left.n, "joinforeign")
	send := b.part(name, given, "subscribe", left.n)
	send.need(b, ok, "the join's function")
	send.need(b, j.key != nil, "the foreign key's function")
	send.noStores(b, set)
	if right.b != b {
		b.fail(send.at, name, "the joined tables belong to different builders")
	}
	left.n.table.needOld(send)
	asked := cut(b, send, Repartition[FK, subscription[K]]{
		name: j.by.name + "-subscription-registration", suffix: "topic", keys: j.by.foreign, values: subscriptions[K]{j.by.keys},
	})
	keep := b.part(name, given, "subscriptions", asked)
	follow := b.part(name, given, "foreign", right.n)
	answer := b.part(name, given, "answer", keep, follow)
	answered := cut(b, answer, Repartition[K, response[FV]]{
		name: j.by.name + "-subscription-response", suffix: "topic", keys: j.by.keys, values: responses[FV]{j.by.others},
	})
	n := b.whole(name, given, answered)
	n.need(b, j.by.values != nil, "the value serde of the left table")
	n.need(b, j.by.others != nil, "the value serde of the right table")
	kept := store.NewKeyValue[combined[FK, K], subscription[K]](
		j.by.name+"-subscription-store", combinedKeys[FK, K]{j.by.foreign, j.by.keys}, subscriptions[K]{j.by.keys})
	b.use(keep, kept, true)
	b.use(follow, kept, false)
	send.Bind = j.bindSend
	keep.Bind = bindKeep(kept, viewOf(right, keep, false))
	follow.Bind = bindFollow[K, FK, FV](kept, j.by.foreign)
	answer.Bind = bindAnswer[K, FV](j.by)
	return j.result(b, n, set, viewOf(left, n, false))
}

// result completes the node that makes rows of answers.
func (j foreignJoin[K, V, FK, FV, R]) result(b *Builder, n *node, set settings, lefts *view[K, V]) KTable[K, R] {
	s := derive[K, R](b, n, set, nil, func(asker *node) bool {
		if asker != nil {
			b.fail(asker.at, asker.Name,
				"the values before a change are wanted of %q: give that join a store with topology.Materialized", n.Name)
		}
		return false
	})
	n.Bind = func(b *processor.Binding) (any, error) {
		out, err := bindDerived(b, n, s, set)
		if err != nil {
			return nil, err
		}
		find, err := lefts.bind(b.Task, false)
		r := &resolver[K, V, FV, R]{node: n.Name, find: find, values: j.by.values, left: j.left, fn: j.fn, out: out}
		return processor.Emit[K, response[FV]](r.process), err
	}
	return KTable[K, R]{b, n}
}

func (j foreignJoin[K, V, FK, FV, R]) bindSend(b *processor.Binding) (any, error) {
	o, err := newOutlet(b, j.by.foreign, serde.Serde[subscription[K]](subscriptions[K]{j.by.keys}))
	if err != nil {
		return nil, err
	}
	s := &subscriber[K, V, FK]{
		out: o, partition: b.Task.ID.Partition, left: j.left, key: j.key, choose: j.by.choose, foreign: j.by.foreign, values: j.by.values,
	}
	return processor.Emit[K, processor.Change[V]](s.process), nil
}

// subscriber turns changes of left rows into subscriptions.
type subscriber[K, V, FK any] struct {
	out       *outlet[FK, subscription[K]]
	partition int32
	left      bool
	key       func(K, V) (FK, bool)
	choose    func(FK, int32) int32
	foreign   serde.Serde[FK]
	values    serde.Serde[V]

	oldKey, newKey, value []byte
}

// process sends at most two subscriptions. The one to the foreign key of the row's old value ends if that has changed. What
// has to be answered is what may change the result: of a left join everything, of an inner one what had a foreign key
// before; the result is then deleted if the new foreign row is not there.
func (s *subscriber[K, V, FK]) process(r processor.Record[K, processor.Change[V]]) (err error) {
	c, m := &r.Value, subscription[K]{key: r.Key, partition: s.partition}
	if c.Outdated {
		return nil
	}
	var before, after FK
	var had, has bool
	if c.HasOld {
		before, had = s.key(r.Key, c.Old)
	}
	if c.HasNew {
		after, has = s.key(r.Key, c.New)
		if s.value, err = appendTo(s.values, s.value, c.New); err != nil {
			return processor.Failed(s.out.node, processor.KindProcess, fmt.Errorf("encode value: %w", err))
		}
		m.hash = rowHash{sum: murmur3(s.value), exists: true}
	}
	moved, err := s.moved(before, after, had, has)
	if err != nil {
		return processor.Failed(s.out.node, processor.KindProcess, fmt.Errorf("encode foreign key: %w", err))
	}
	if moved {
		m.do = unsubscribe
		if !s.left && !has {
			m.do = unsubscribeAnswered
		}
		if err := s.send(r, m, before, true); err != nil {
			return err
		}
	}
	switch {
	case s.left && (c.HasOld || c.HasNew), moved && has:
		m.do = subscribeAnswered
	case has && !s.left:
		m.do = subscribe
	default:
		return nil
	}
	return s.send(r, m, after, has)
}

// moved reports whether the row referred to another foreign key before.
func (s *subscriber[K, V, FK]) moved(before, after FK, had, has bool) (moved bool, err error) {
	if !had || !has {
		return had, nil
	}
	if s.oldKey, err = appendTo(s.foreign, s.oldKey, before); err != nil {
		return false, err
	}
	s.newKey, err = appendTo(s.foreign, s.newKey, after)
	return !bytes.Equal(s.oldKey, s.newKey), err
}

// send sends a subscription to the task of its foreign key; one without a foreign key goes anywhere.
func (s *subscriber[K, V, FK]) send(r processor.Record[K, processor.Change[V]], m subscription[K], key FK, exists bool) error {
	partition := int32(-1)
	if exists && s.choose != nil {
		partition = s.choose(key, s.out.partitions)
		if partition < 0 || partition >= s.out.partitions {
			return processor.Failed(s.out.node, processor.KindProcess,
				fmt.Errorf("topology: the partitioner chose %d of the %d partitions of %q", partition, s.out.partitions, s.out.topic))
		}
	}
	return s.out.sendTo(partition, processor.Record[FK, subscription[K]]{
		Key: key, NullKey: !exists, Value: m, Timestamp: r.Timestamp, Headers: own(r.Headers),
	})
}
