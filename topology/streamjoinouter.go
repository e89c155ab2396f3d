package topology

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
)

// OuterStore declares the store in which LeftJoinStreams and OuterJoinStreams keep the records of both sides that have met
// no other so far. Its bytes are those of Kafka Streams: a key is the timestamp as a big-endian int64, a byte, 1 for the left
// side and 0 for the right, and the record's key; a value the list of the records' values.
type OuterStore[K, A, B any] struct {
	*store.KeyValue[[]byte, []byte]
	keys  serde.Serde[K]
	left  serde.Serde[A]
	right serde.Serde[B]
}

// NewOuterStore declares an outer store for streams with such keys and values.
func NewOuterStore[K, A, B any](name string, keys serde.Serde[K], left serde.Serde[A], right serde.Serde[B]) *OuterStore[K, A, B] {
	return &OuterStore[K, A, B]{store.NewKeyValue(name, serde.Bytes, serde.Bytes), keys, left, right}
}

// declare connects the store to both sides of a join.
func (d *OuterStore[K, A, B]) declare(b *Builder, n, left, right *node) {
	if d == nil {
		b.fail(n.at, n.Name, "the outer store is nil")
		return
	}
	n.need(b, d.keys != nil && d.left != nil && d.right != nil, fmt.Sprintf("a serde of store %q", d.Name()))
	b.use(left, d, true)
	b.use(right, d, false)
}

// valueEncoder is a serde, seen from one side.
type valueEncoder[V any] interface {
	Append(dst []byte, v V) ([]byte, error)
}

// joinTimes is what both sides of a join know in one task: stream time, and what has met no other.
type joinTimes[K, R any] struct {
	seen   *processor.Kept
	rows   *store.Layered // of the outer store; nil: there is none
	keys   valueEncoder[K]
	alone  func(key, value []byte) (K, R, error) // what an unmatched record gives
	after  [2]int64                              // how long a record waits, grace included: the right side's and the left side's
	grace  int64
	oneWay bool // only left records are kept

	// oldest is a lower bound of the timestamps of what has met no other, as Kafka Streams keeps it: it may be higher than the
	// truth, and such rows are given later. noneOlder: there is none; processor.Unknown: it is not known, as when a store was
	// taken over.
	oldest *processor.Kept

	key, value []byte
}

// joinTimesOf returns what the sides of a join share in a task.
func joinTimesOf[K, A, B, R any](task *processor.Task, n *node, j streamJoin[K, A, B, R]) (*joinTimes[K, R], error) {
	if t, ok := task.Shared(n).(*joinTimes[K, R]); ok {
		return t, nil
	}
	t := &joinTimes[K, R]{seen: streamTimeOf(task, j.leftStore.Name()), keys: j.leftStore.KeySerde()}
	if j.keepLeft {
		rows, err := task.Layered(j.outer.Name())
		if err != nil {
			return nil, err
		}
		t.rows, t.oneWay, t.keys = rows, !j.keepRight, j.outer.keys
		t.grace = j.windows.late.Milliseconds()
		t.after = [2]int64{j.windows.before.Milliseconds() + t.grace, j.windows.after.Milliseconds() + t.grace}
		t.alone = j.unmatched
		if t.oldest, err = oldestOf(task, rows); err != nil {
			return nil, err
		}
	}
	task.Share(n, t)
	return t, nil
}

// oldestOf returns the kept bound, which is none for an empty store that had none before.
func oldestOf(task *processor.Task, rows *store.Layered) (*processor.Kept, error) {
	oldest := task.Keep(rows.Name() + "@oldest")
	if oldest.Value() != processor.Unknown {
		return oldest, nil
	}
	empty := true
	err := rows.Scan(store.Range{}, func(store.Pair) (bool, error) {
		empty = false
		return false, nil
	})
	if empty {
		oldest.Set(noneOlder)
	}
	return oldest, err
}

// unmatched decodes a record of the outer store and joins it with none.
func (j streamJoin[K, A, B, R]) unmatched(key, value []byte) (k K, r R, err error) {
	if k, err = j.outer.keys.Decode(key[9:]); err != nil {
		return k, r, fmt.Errorf("store %q: decode key: %w", j.outer.Name(), err)
	}
	var a A
	var b B
	left := value[0] == 1
	if left {
		a, err = j.outer.left.Decode(value[1:])
	} else {
		b, err = j.outer.right.Decode(value[1:])
	}
	if err != nil {
		return k, r, fmt.Errorf("store %q: decode value: %w", j.outer.Name(), err)
	}
	return k, j.join(k, a, left, b, !left), nil
}

// sideByte is 1 for the left side and 0 for the right one.
func sideByte(left bool) byte {
	if left {
		return 1
	}
	return 0
}

// outerKey fills the key scratch with the key of a record in the outer store.
func (t *joinTimes[K, R]) outerKey(left bool, k K, ts int64) (err error) {
	t.key = append(binary.BigEndian.AppendUint64(t.key[:0], uint64(ts)), sideByte(left))
	if t.key, err = t.keys.Append(t.key, k); err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return nil
}

// forget takes a record that has met another out of the outer store, if it is there.
func (t *joinTimes[K, R]) forget(left bool, k K, ts int64) error {
	if t.rows == nil {
		return nil
	}
	if err := t.outerKey(left, k, ts); err != nil {
		return err
	}
	_, _, ok, err := t.rows.Get(t.value[:0], t.key)
	if err == nil && ok {
		_, err = t.rows.Delete(t.key, ts, nil)
	}
	return err
}

// remember puts a record that has met no other into the outer store, behind those of the same key and time.
func remember[K, V, R any](t *joinTimes[K, R], left bool, values valueEncoder[V], r processor.Record[K, V]) (err error) {
	if err := t.outerKey(left, r.Key, r.Timestamp); err != nil {
		return err
	}
	list, _, _, err := t.rows.Get(t.value[:0], t.key)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = append(list, listOfAny, 0, 0, 0, 0)
	}
	at := len(list)
	list = append(list, 0, 0, 0, 0, sideByte(left))
	if list, err = values.Append(list, r.Value); err != nil {
		return fmt.Errorf("encode value: %w", err)
	}
	binary.BigEndian.PutUint32(list[at:], uint32(len(list)-at-4))
	binary.BigEndian.PutUint32(list[1:], binary.BigEndian.Uint32(list[1:])+1)
	t.value = list
	t.oldest.Set(min(t.oldest.Value(), r.Timestamp))
	_, err = t.rows.Put(t.key, list, r.Timestamp, nil)
	return err
}

// giveUnmatched gives what can meet no other any more, in the order of timestamps, the right side first, and keys. after is
// how much newer than a record of the asking side the others may be. When it looks, and which rows it then takes for closed,
// is as in Kafka Streams (KStreamKStreamJoin with an emit interval of 0), since that decides when they are given.
func (t *joinTimes[K, R]) giveUnmatched(after int64, next processor.Emit[K, R]) error {
	if t.rows == nil || t.nothingClosed(after) {
		return nil
	}
	t.oldest.Set(noneOlder)
	var open [2]bool // the right side's and the left side's remaining rows
	err := t.rows.Scan(store.Range{}, func(p store.Pair) (bool, error) {
		if len(p.Key) < 9 || p.Key[8] > 1 {
			return false, errOuterRow
		}
		ts := int64(binary.BigEndian.Uint64(p.Key))
		t.oldest.Set(ts)
		if open[0] && open[1] || open[1] && t.oneWay {
			return false, nil
		}
		side := p.Key[8]
		if open[side] = open[side] || ts+t.after[side] >= t.seen.Value(); open[side] {
			// Kafka Streams goes from record to record, and so would stop at the second one of this row.
			return !(open[0] && open[1] && records(p.Value) > 1), nil
		}
		if err := t.give(p, next); err != nil {
			return false, err
		}
		_, err := t.rows.Delete(p.Key, ts, nil)
		return true, err
	})
	if err == nil && open[1] && t.oneWay {
		err = t.newestLeft()
	}
	return err
}

// noneOlder is the lower bound of no timestamps.
const noneOlder = math.MaxInt64

func (t *joinTimes[K, R]) nothingClosed(after int64) bool {
	oldest := t.oldest.Value()
	return oldest == noneOlder || oldest != processor.Unknown && oldest+after+t.grace >= t.seen.Value()
}

// newestLeft sets oldest to the timestamp of the newest row: Kafka Streams, which goes on to the end when there is only one
// side, ends there.
func (t *joinTimes[K, R]) newestLeft() error {
	return t.rows.Scan(store.Range{Reverse: true}, func(p store.Pair) (bool, error) {
		t.oldest.Set(int64(binary.BigEndian.Uint64(p.Key)))
		return false, nil
	})
}

// The encoding of lists: elements of any length.
const listOfAny = 1

var errOuterRow = errors.New("topology: not a row of the outer store of a join")

// records returns how many records a row holds.
func records(list []byte) uint32 {
	if len(list) < 5 {
		return 0
	}
	return binary.BigEndian.Uint32(list[1:])
}

// give forwards the records of a row.
func (t *joinTimes[K, R]) give(p store.Pair, next processor.Emit[K, R]) error {
	ts, list := int64(binary.BigEndian.Uint64(p.Key)), p.Value
	if len(list) < 5 || list[0] != listOfAny {
		return errOuterRow
	}
	n := records(list)
	for list = list[5:]; n > 0; n-- {
		if len(list) < 4 {
			return errOuterRow
		}
		size := int(binary.BigEndian.Uint32(list))
		if list = list[4:]; size < 1 || size > len(list) {
			return errOuterRow
		}
		k, r, err := t.alone(p.Key, slices.Clip(list[:size]))
		if err != nil {
			return err
		}
		if err := next(processor.Record[K, R]{Key: k, Value: r, Timestamp: ts}); err != nil {
			return err
		}
		list = list[size:]
	}
	return nil
}
