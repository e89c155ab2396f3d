package topology_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// feed sends records one by one, each to be processed and committed in all tasks.
func (r *rig) feed(lines ...string) {
	for _, line := range lines {
		topic, in := question1(line)
		r.send(topic, in)
		must(0, r.run())
	}
}

func joined(b *topology.Builder, isLeft bool, opts ...topology.DerivedOption) {
	topology.To(topology.Changes(foreign(isLeft, opts...)(b)), out)
}

// Field report 33: a row whose foreign key was null joins when it gets one, and its result goes when that is null again.
func TestFieldReport33ForeignKeyFromAndToNull(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	joined(b, false)
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	r.feed("in2 A ra 1", "in p1 -null 2")
	equal(t, read(r, out))
	r.feed("in p1 A 3")
	equal(t, read(r, out), "p1=A+ra@3")
	r.feed("in p1 -null 4")
	equal(t, read(r, out), "p1=null@4")
	equal(t, subscriptions(r))
}

// suffixed is a partitioner by the end of the key.
func suffixed(key string, n int32) int32 { return int32(key[len(key)-1]) % n }

// Field report 34: the result does not depend on how many partitions there are, nor on how topics are partitioned: the answer
// goes to where the row came from.
func TestFieldReport34ForeignKeysAcrossPartitions(t *testing.T) {
	t.Parallel()
	results := func(partitions int32) map[string]string {
		b := topology.NewBuilder()
		j := topology.JoinForeign(left(b), right(b), byFirst.PartitionedBy(suffixed), func(_, v string) (string, bool) {
			return v[:3], v[0] != '-'
		}, plus)
		topology.To(topology.Changes(j), out)
		r := start(b, processor.Options{}, map[string]int32{"in": partitions, "in2": partitions})
		put := func(topic, key, value string, ts int64) {
			tp := processor.TopicPartition{Topic: topic, Partition: suffixed(key, partitions)}
			r.deliver(tp, text(key, value, ts))
		}
		for i := range 100 {
			put("in", fmt.Sprintf("row%d", i), fmt.Sprintf("fk%d", i%10), int64(i))
			if i%10 == 3 {
				put("in2", fmt.Sprintf("fk%d", i/10), fmt.Sprintf("before%d", i), int64(i))
			}
			if i%30 == 0 {
				must(0, r.run())
			}
		}
		for i := range 10 {
			put("in2", fmt.Sprintf("fk%d", i), fmt.Sprintf("after%d", i), 1000)
			put("in", fmt.Sprintf("row%d", i), fmt.Sprintf("fk%d again", (i+1)%10), 1000)
		}
		must(0, r.run())
		rows := map[string]string{}
		for _, line := range read(r, out) {
			key, value, _ := strings.Cut(line, "=")
			rows[key] = value
		}
		return rows
	}
	one, four := results(1), results(4)
	if len(one) != 100 || !maps.Equal(one, four) {
		t.Errorf("%d rows with one partition, %d with four:\n%v\n%v", len(one), len(four), one, four)
	}
	if one["row7"] != "fk8 again+after8@1000" {
		t.Errorf("row7 is %s", one["row7"])
	}
}

// The topics and the store bear the names that Kafka Streams gives with TableJoined.as, and what is asked goes to the
// foreign key's partition, what is answered to the row's.
func TestForeignKeyTopics(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	joined(b, true)
	r := start(b, processor.Options{}, map[string]int32{"in": 3, "in2": 2})
	var created []string
	for _, c := range r.layout.Create {
		created = append(created, fmt.Sprintf("%s %d", c.Name, c.Partitions))
	}
	equal(t, created, "app-fk-subscription-registration-topic 2", "app-fk-subscription-response-topic 3",
		"app-fk-subscription-store-changelog 2", "app-st-in-changelog 3", "app-st-in2-changelog 2")
	r.feed("in2 A ra 1", "in p1 A 2")
	asked, answered := r.out["app-fk-subscription-registration-topic"], r.out["app-fk-subscription-response-topic"]
	if len(asked) != 1 || asked[0].Partition != processor.PartitionForKey([]byte("A"), 2) ||
		len(answered) != 1 || answered[0].Partition != processor.PartitionForKey([]byte("p1"), 3) {
		t.Errorf("asked %+v\nanswered %+v", asked, answered)
	}
}

// An empty value of a foreign row is a value, though Kafka Streams takes it for none.
func TestForeignRowWithEmptyValue(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	joined(b, false)
	r := start(b, processor.Options{EveryUpdate: true}, nil)
	r.feed("in2 A '' 1", "in p1 A 2", "in2 A - 3")
	equal(t, read(r, out), "p1=A+@2", "p1=null@3")
}

// A step that fails below takes along what the foreign key has kept.
func TestFailedStepKeepsNoSubscription(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder()
	joined(b, false, derived)
	refuse(topology.From(b, in), "picky", func(v string) bool { return v == "Bad" })
	r := start(b, processor.Options{EveryUpdate: true, Policy: processor.SkipBadRecords()}, nil)
	r.feed("in2 A ra 1", "in2 B rb 1", "in p1 Bad 2", "in p2 A 3", "in p2 Bad 4")
	equal(t, read(r, out), "p2=A+ra@3")
	equal(t, subscriptions(r), "A p2")
}

func subscriptions(r *rig) (keys []string) {
	for _, stores := range r.stores {
		if l := stores["fk-subscription-store"]; l != nil {
			must(0, l.Scan(store.Range{}, func(p store.Pair) (bool, error) {
				keys = append(keys, string(p.Key[4:5])+" "+string(p.Key[5:]))
				return true, nil
			}))
		}
	}
	slices.Sort(keys)
	return keys
}
