package embedded_test

import (
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/internal/embedded"
	"github.com/rcrowley/go-metrics"
)

func TestMain(m *testing.M) {
	metrics.UseNilMetrics = true
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

// start runs a broker that the test closes itself, or leaves to the end of the test.
func start(t *testing.T, opts embedded.Options) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func stop(t *testing.T, b *embedded.Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func values(records []brokertest.Record) []string {
	var vs []string
	for _, r := range records {
		vs = append(vs, string(r.Value))
	}
	return vs
}

func TestCleanRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	if fresh, reason := b.Fresh(); !fresh || reason != "" {
		t.Errorf("a first start is fresh = %v, reason %q", fresh, reason)
	}
	id := b.LogID()
	createTopics(t, b.Addrs())
	brokertest.CreateTopic(t, b.Addrs(), "other", 2, map[string]string{"cleanup.policy": "compact"})
	brokertest.Produce(t, b.Addrs(), "other", brokertest.Record{Partition: 1, Key: []byte("k"), Value: []byte("plain")})
	w, err := newWriter(b.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{true, false, true} {
		if err := w.transaction(commit); err != nil {
			t.Fatal(err)
		}
	}
	w.close()
	stop(t, b)

	b = start(t, embedded.Options{Dir: dir})
	if fresh, reason := b.Fresh(); fresh || b.LogID() != id {
		t.Errorf("after a clean end: fresh = %v (%s), log %s, was %s", fresh, reason, b.LogID(), id)
	}
	if got := values(brokertest.ReadCommitted(t, b.Addrs(), "other")); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("other: %q", got)
	}
	seen := state(t, b.Addrs())
	if !slices.Equal(seen, []int{0, 2}) {
		t.Errorf("committed: %v", seen)
	}
	goOn(t, b.Addrs(), seen)
}

func TestDirectoryBelongsToOneBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	_, err := embedded.Start(embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second broker: %v", err)
	}
	stop(t, b)
	stop(t, start(t, embedded.Options{Dir: dir}))
}

// A start that fails for another reason leaves the log as trusted as it was.
func TestFailedStartKeepsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	brokertest.CreateTopic(t, b.Addrs(), "kept", 1, nil)
	brokertest.Produce(t, b.Addrs(), "kept", brokertest.Record{Value: []byte("v")})
	stop(t, b)
	other := start(t, embedded.Options{})
	if _, err := embedded.Start(embedded.Options{Dir: dir, Port: port(t, other)}); err == nil {
		t.Fatal("two brokers on one port")
	}
	b = start(t, embedded.Options{Dir: dir})
	if fresh, _ := b.Fresh(); fresh {
		t.Error("the log was given up")
	}
	if got := values(brokertest.ReadCommitted(t, b.Addrs(), "kept")); !slices.Equal(got, []string{"v"}) {
		t.Errorf("got %q", got)
	}
}

func port(t *testing.T, b *embedded.Broker) int {
	t.Helper()
	_, text, err := net.SplitHostPort(b.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBrokerInMemory(t *testing.T) {
	t.Parallel()
	b := start(t, embedded.Options{Partitions: 3, TopicAutoCreate: true})
	if fresh, reason := b.Fresh(); !fresh || reason != "" || b.LogID() != "" || b.Repaired() {
		t.Errorf("fresh %v %q, id %q, repaired %v", fresh, reason, b.LogID(), b.Repaired())
	}
	cfg := brokertest.Config()
	cfg.Metadata.AllowAutoTopicCreation = true
	client, err := sarama.NewClient(b.Addrs(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if partitions, err := client.Partitions("by-itself"); err != nil || len(partitions) != 3 {
		t.Errorf("a topic made by asking for it: %v, %v", partitions, err)
	}
	stop(t, b)
	stop(t, b)
}

// A partition that has lost all of its records to DeleteRecords goes on at its end after a restart, not at 0.
func TestDeletedRecordsDoNotMoveTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	brokertest.CreateTopic(t, b.Addrs(), "purged", 1, nil)
	brokertest.Produce(t, b.Addrs(), "purged", brokertest.Record{Value: []byte("a")}, brokertest.Record{Value: []byte("b")})
	admin, err := sarama.NewClusterAdmin(b.Addrs(), brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.DeleteRecords("purged", map[int32]int64{0: 2}); err != nil {
		t.Fatal(err)
	}
	admin.Close()
	stop(t, b)
	b = start(t, embedded.Options{Dir: dir})
	brokertest.Produce(t, b.Addrs(), "purged", brokertest.Record{Value: []byte("c")})
	if end := brokertest.LastStableOffset(t, b.Addrs(), "purged", 0); end != 3 {
		t.Errorf("the partition ends at %d", end)
	}
}
