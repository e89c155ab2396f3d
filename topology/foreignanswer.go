package topology

import (
	"fmt"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// bindKeep binds the node that keeps subscriptions and answers them.
func bindKeep[K, FK, FV any](kept *store.KeyValue[combined[FK, K], subscription[K]], rights *view[FK, FV]) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		l, err := b.Task.Layered(kept.Name())
		if err != nil {
			return nil, err
		}
		find, err := rights.bind(b.Task, false)
		k := &keeper[K, FK, FV]{
			task: b.Task, node: b.Node.Name, store: l, keys: kept.KeySerde(), values: kept.ValueSerde(), find: find,
			next: processor.FanOut[K, response[FV]](b),
		}
		return processor.Emit[FK, subscription[K]](k.process), err
	}
}

type keeper[K, FK, FV any] struct {
	task       *processor.Task
	node       string
	store      *store.Layered
	keys       serde.Serde[combined[FK, K]]
	values     serde.Serde[subscription[K]]
	find       lookup[FK, FV]
	next       processor.Emit[K, response[FV]]
	key, value []byte
}

func (k *keeper[K, FK, FV]) process(r processor.Record[FK, subscription[K]]) error {
	m := r.Value
	if r.NullValue {
		return nil
	}
	if r.NullKey && m.do != subscribeAnswered {
		return k.task.NullKey(k.node)
	}
	out := processor.Record[K, response[FV]]{
		Key: m.key, Value: response[FV]{hash: m.hash, partition: m.partition}, Timestamp: r.Timestamp, Headers: r.Headers,
	}
	if !r.NullKey {
		if err := k.keep(&r); err != nil {
			return processor.Failed(k.node, processor.KindProcess, err)
		}
		found, err := k.find(r.Key)
		if err != nil {
			return processor.Failed(k.node, processor.KindProcess, err)
		}
		if found.exists {
			out.Timestamp = max(out.Timestamp, found.timestamp)
			if m.do >= subscribeAnswered {
				out.Value.value, out.Value.exists = found.value, true
			}
		}
	}
	if m.do == unsubscribe || m.do == subscribe && !out.Value.exists {
		return nil
	}
	return k.next(out)
}

// keep writes or deletes the subscription.
func (k *keeper[K, FK, FV]) keep(r *processor.Record[FK, subscription[K]]) (err error) {
	m := r.Value
	if k.key, err = appendTo(k.keys, k.key, combined[FK, K]{r.Key, m.key}); err != nil {
		return fmt.Errorf("encode the key of a subscription: %w", err)
	}
	if m.do <= unsubscribeAnswered {
		_, err = k.store.Delete(k.key, r.Timestamp, r.Headers)
		return err
	}
	if k.value, err = appendTo(k.values, k.value, m); err != nil {
		return fmt.Errorf("encode a subscription: %w", err)
	}
	_, err = k.store.Put(k.key, k.value, r.Timestamp, r.Headers)
	return err
}

// bindFollow binds the node that tells changes of foreign rows to those who have subscribed, in the order of their keys'
// bytes.
func bindFollow[K, FK, FV any](
	kept *store.KeyValue[combined[FK, K], subscription[K]], foreign serde.Serde[FK],
) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		l, err := b.Task.Layered(kept.Name())
		if err != nil {
			return nil, err
		}
		node, next := b.Node.Name, processor.FanOut[K, response[FV]](b)
		prefixes := combinedKeys[FK, K]{foreign: foreign}
		var prefix []byte
		return processor.Emit[FK, processor.Change[FV]](func(r processor.Record[FK, processor.Change[FV]]) error {
			if r.Value.Outdated {
				return nil
			}
			begin, err := prefixes.prefix(prefix[:0], r.Key)
			if err != nil {
				return processor.Failed(node, processor.KindProcess, fmt.Errorf("encode foreign key: %w", err))
			}
			prefix = begin
			err = l.Scan(store.PrefixRange(prefix), func(p store.Pair) (bool, error) {
				m, err := kept.ValueSerde().Decode(p.Value)
				if err != nil {
					return false, fmt.Errorf("decode a subscription: %w", err)
				}
				return true, next(processor.Record[K, response[FV]]{
					Key: m.key, Timestamp: r.Timestamp, Headers: own(r.Headers),
					Value: response[FV]{hash: m.hash, value: r.Value.New, exists: r.Value.HasNew, partition: m.partition},
				})
			})
			return processor.Failed(node, processor.KindProcess, err)
		}), nil
	}
}

// bindAnswer binds the sink of answers, which go to the partition that their row came from.
func bindAnswer[K, FV, V, FK any](by ForeignKey[K, V, FK, FV]) func(*processor.Binding) (any, error) {
	return func(b *processor.Binding) (any, error) {
		o, err := newOutlet(b, by.keys, serde.Serde[response[FV]](responses[FV]{by.others}))
		if err != nil {
			return nil, err
		}
		return processor.Emit[K, response[FV]](func(r processor.Record[K, response[FV]]) error {
			return o.sendTo(r.Value.partition, r)
		}), nil
	}
}

// resolver makes rows of answers. An answer to a row that is no longer the same is dropped: another one is under way.
type resolver[K, V, FV, R any] struct {
	node   string
	find   lookup[K, V]
	values serde.Serde[V]
	left   bool
	fn     func(V, FV, bool) R
	out    *derived[K, R]
	value  []byte
}

func (p *resolver[K, V, FV, R]) process(r processor.Record[K, response[FV]]) error {
	found, err := p.find(r.Key)
	if err != nil {
		return processor.Failed(p.node, processor.KindProcess, err)
	}
	now := rowHash{exists: found.exists}
	if found.exists {
		if p.value, err = appendTo(p.values, p.value, found.value); err != nil {
			return processor.Failed(p.node, processor.KindProcess, fmt.Errorf("encode value: %w", err))
		}
		now.sum = murmur3(p.value)
	}
	if now != r.Value.hash {
		return nil
	}
	out := processor.Record[K, processor.Change[R]]{Key: r.Key, Timestamp: r.Timestamp, Headers: r.Headers}
	if found.exists && (p.left || r.Value.exists) {
		out.Value.New, out.Value.HasNew = p.fn(found.value, r.Value.value, r.Value.exists), true
	}
	return p.out.forward(out)
}
