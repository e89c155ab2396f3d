package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// right makes what the application would write for an input, by topic.
func right(a application, in input, want results) map[string][]brokertest.Record {
	all := map[string][]brokertest.Record{}
	add := func(topic, key, value string) {
		all[topic] = append(all[topic], brokertest.KV(key, value))
	}
	for word, n := range want.words {
		for i := range n {
			count := string(binary.BigEndian.AppendUint64(nil, uint64(i+1)))
			add(a.counts(), word, count)
			add(a.countsLog(), word, count)
			add(a.byWord(), word, word)
		}
	}
	bags := map[string]map[entry]int{a.joined(): want.joined, a.named(): want.named, a.leftsLog(): want.lefts, a.rightsLog(): want.rights, a.history(): want.history}
	for topic, bag := range bags {
		number := uint32(0)
		for e, n := range bag {
			for range n {
				key := e.Key
				if topic == a.leftsLog() || topic == a.rightsLog() {
					number++
					key += string(binary.BigEndian.AppendUint32(make([]byte, 8), number))
				}
				add(topic, key, e.Value)
			}
		}
	}
	for _, row := range in.rows {
		r := brokertest.KV(row.Key, row.Value)
		if row.Value == "" {
			r.Value = nil
		}
		all[a.rowsLog()] = append(all[a.rowsLog()], r)
	}
	return all
}

// The comparison finds nothing where all is right, and finds each single record that is lost, doubled or wrong.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	k, err := openKafka(brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.close() })
	lose := func(records []brokertest.Record) []brokertest.Record { return records[:len(records)-1] }
	double := func(records []brokertest.Record) []brokertest.Record { return append(records, records[len(records)-1]) }
	change := func(records []brokertest.Record) []brokertest.Record {
		records[len(records)-1].Value = []byte("12345678")
		return records
	}
	for _, c := range []struct {
		name   string
		topic  func(application) string
		change func([]brokertest.Record) []brokertest.Record
	}{
		{"nothing", nil, nil},
		{"a count lost", application.counts, lose},
		{"a count doubled", application.counts, double},
		{"a word lost on the way", application.byWord, lose},
		{"a word doubled on the way", application.byWord, double},
		{"a row wrong", application.countsLog, change},
		{"a pair lost", application.joined, lose},
		{"a pair doubled", application.joined, double},
		{"a name lost", application.named, lose},
		{"a name doubled", application.named, double},
		{"a kept record lost", application.leftsLog, lose},
		{"a kept record wrong", application.rightsLog, change},
		{"a change lost", application.history, lose},
		{"a change doubled", application.history, double},
		{"a table's row wrong", application.rowsLog, change},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := application{ID: brokertest.UniqueName(t, "chaos")}
			for _, topic := range slices.Concat(a.consumed(), a.outputs(), a.changelogs(), []string{a.users()}) {
				brokertest.CreateTopic(t, brokers, topic, partitions, nil)
			}
			w := newWriter(3, time.UnixMilli(1_700_000_000_000))
			p, err := k.producer()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, batch := range [][]fed{w.table(a), w.next(a), w.next(a), w.next(a)} {
				if err := p.SendMessages(messages(batch)); err != nil {
					t.Fatal(err)
				}
			}
			in, err := readInput(t.Context(), k, a)
			if err != nil {
				t.Fatal(err)
			}
			written := right(a, in, compute(in))
			if c.topic != nil {
				written[c.topic(a)] = c.change(written[c.topic(a)])
			}
			for topic, records := range written {
				brokertest.Produce(t, brokers, topic, records...)
			}
			wrong, err := check(t.Context(), k, a)
			if err != nil {
				t.Fatal(err)
			}
			if c.topic == nil {
				if len(wrong) > 0 {
					t.Error(strings.Join(wrong, "\n"))
				}
			} else if len(wrong) == 0 || !strings.HasPrefix(wrong[0], c.topic(a)) {
				t.Errorf("got %s", fmt.Sprint(wrong))
			}
		})
	}
}
