package embedded_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

// writer stands for an application under exactly-once: transaction n writes the value n to out and to both partitions of
// log, and commits offset n+1 of partition 0 of in.
type writer struct {
	producer sarama.SyncProducer
	n        int
}

func createTopics(t *testing.T, brokers []string) {
	t.Helper()
	brokertest.CreateTopic(t, brokers, "in", 1, nil)
	brokertest.CreateTopic(t, brokers, "out", 1, nil)
	brokertest.CreateTopic(t, brokers, "log", 2, nil)
}

func newWriter(brokers []string) (*writer, error) {
	cfg := brokertest.Config()
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Transaction.ID = "writer"
	cfg.Producer.Transaction.Timeout = time.Minute
	p, err := sarama.NewSyncProducer(brokers, cfg)
	return &writer{producer: p}, err
}

func (w *writer) close() { w.producer.Close() }

// open writes transaction n without ending it.
func (w *writer) open() error {
	if err := w.producer.BeginTxn(); err != nil {
		return err
	}
	value := sarama.StringEncoder(strconv.Itoa(w.n))
	err := w.producer.SendMessages([]*sarama.ProducerMessage{
		{Topic: "out", Partition: 0, Value: value},
		{Topic: "log", Partition: 0, Value: value},
		{Topic: "log", Partition: 1, Value: value},
	})
	if err != nil {
		return err
	}
	return w.producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
		"in": {{Partition: 0, Offset: int64(w.n) + 1}},
	}, "group")
}

// transaction writes and ends transaction n, and moves to the next.
func (w *writer) transaction(commit bool) error {
	if err := w.open(); err != nil {
		return err
	}
	w.n++
	if commit {
		return w.producer.CommitTxn()
	}
	return w.producer.AbortTxn()
}

// state is what a reader sees of the writer's work. The partitions of log must tell the same story as out, and the
// offset must be the one after the last of it.
func state(t *testing.T, brokers []string) []int {
	t.Helper()
	var out []int
	for _, r := range brokertest.ReadCommitted(t, brokers, "out") {
		n, err := strconv.Atoi(string(r.Value))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	logs := map[int32][]int{}
	for _, r := range brokertest.ReadCommitted(t, brokers, "log") {
		n, _ := strconv.Atoi(string(r.Value))
		logs[r.Partition] = append(logs[r.Partition], n)
	}
	offsets := map[int32]int64{}
	if len(out) > 0 {
		offsets[0] = int64(out[len(out)-1]) + 1
	}
	if got := brokertest.GroupOffsets(t, brokers, "group", "in"); !maps.Equal(got, offsets) {
		t.Errorf("offsets %v do not belong to %v", got, out)
	}
	if !slices.Equal(logs[0], out) || !slices.Equal(logs[1], out) {
		t.Errorf("parts of transactions: out %v, log %v", out, logs)
	}
	return out
}

// goOn continues after the committed offset, as an application does that starts again, and checks that it is seen.
func goOn(t *testing.T, brokers []string, before []int) {
	t.Helper()
	w, err := newWriter(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if len(before) > 0 {
		w.n = before[len(before)-1] + 1
	}
	next := w.n
	if err := w.transaction(true); err != nil {
		t.Fatal(err)
	}
	if got, want := state(t, brokers), append(slices.Clone(before), next); !slices.Equal(got, want) {
		t.Errorf("after another transaction: %s", fmt.Sprint(got, " want ", want))
	}
}
