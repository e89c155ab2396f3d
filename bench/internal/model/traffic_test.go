package model_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// Numbers of requests in Kafka's protocol.
const (
	produce       = 0
	fetch         = 1
	heartbeat     = 12
	addPartitions = 24
	addOffsets    = 25
	endTxn        = 26
	commitOffsets = 28
)

var apiNames = map[int16]string{
	produce: "Produce", fetch: "Fetch", heartbeat: "Heartbeat", addPartitions: "AddPartitionsToTxn",
	addOffsets: "AddOffsetsToTxn", endTxn: "EndTxn", commitOffsets: "TxnOffsetCommit",
}

// counts are requests and their bytes, by their numbers, and the bytes of all answers.
type counts struct {
	requests, sent map[int16]int
	received       int
}

// traffic counts what goes over the connections of an application.
type traffic struct {
	mu sync.Mutex
	counts
}

func newTraffic() *traffic {
	return &traffic{counts: counts{requests: map[int16]int{}, sent: map[int16]int{}}}
}

// Dial makes a connection that is counted.
func (c *traffic) Dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	return &counted{conn, c}, err
}

// snapshot returns what has been counted so far.
func (c *traffic) snapshot() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counts{maps.Clone(c.requests), maps.Clone(c.sent), c.received}
}

type counted struct {
	net.Conn
	traffic *traffic
}

// Write counts a request: sarama writes each of them at once.
func (c *counted) Write(b []byte) (int, error) {
	if len(b) >= 6 {
		api := int16(binary.BigEndian.Uint16(b[4:]))
		c.traffic.mu.Lock()
		c.traffic.requests[api]++
		c.traffic.sent[api] += len(b)
		c.traffic.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.mu.Lock()
	c.traffic.received += n
	c.traffic.mu.Unlock()
	return n, err
}

// running is an application that counts per key, and its traffic.
type running struct {
	*traffic
	app     *millrace.App
	in      string
	brokers []string
}

const partitions = 4

func start(t testing.TB, workers int) *running {
	t.Helper()
	r := &running{traffic: newTraffic(), brokers: brokertest.Brokers(t), in: brokertest.Topic(t, "in", partitions)}
	b := topology.NewBuilder()
	in := topology.From(b, topology.NewTopic(r.in, serde.String, serde.String))
	counted := topology.Count(topology.GroupByKey(in), store.NewKeyValue("counts", serde.String, serde.Int64))
	topology.To(topology.Changes(counted), topology.NewTopic(brokertest.Topic(t, "out", partitions), serde.String, serde.Int64))
	topo, err := b.Build()
	must(t, err)
	r.app, err = millrace.New(topo, millrace.Config{
		ApplicationID: brokertest.UniqueName(t, "app"), Brokers: r.brokers, StateDir: t.TempDir(), Store: memory.Opener{}, Workers: workers,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Configure: func(s *sarama.Config) {
			s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, r.traffic
		},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return r
}

// caughtUp waits until all input is committed.
func (r *running) caughtUp(t testing.TB) {
	t.Helper()
	brokertest.Eventually(t, time.Minute, func() (bool, string) {
		lag, err := r.app.Lag(t.Context())
		return err == nil && lag == 0, fmt.Sprint("lag ", lag, ", ", err)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A transaction makes the requests that the model says, once each: whatever the speed, there are as many of each kind. A
// broker that is not ready yet has some of them made again.
func TestRequestsOfATransaction(t *testing.T) {
	t.Parallel()
	r := start(t, 1)
	for n := range 20 {
		brokertest.Produce(t, r.brokers, r.in, brokertest.KV(fmt.Sprint("key", n), "value"))
		r.caughtUp(t)
	}
	got := r.snapshot()
	ended := got.requests[endTxn]
	if ended < 20 {
		t.Fatalf("%d transactions for 20 records that were waited for one by one", ended)
	}
	for _, api := range []int16{produce, addPartitions, addOffsets, commitOffsets} {
		if n := got.requests[api]; n < ended || n > 3*ended {
			t.Errorf("%d %s of %d transactions", n, apiNames[api], ended)
		}
	}
}

// BenchmarkTraffic measures what an application with one process asks of its broker, at rest and at some rates: requests per
// second and transaction, bytes, and its CPU. Of the CPU it says the truth only on a broker in another process (MILLRACE_BROKERS).
func BenchmarkTraffic(b *testing.B) {
	for _, rate := range []int{0, 20, 1_000, 20_000} {
		b.Run(fmt.Sprint("rate=", rate), func(b *testing.B) {
			r := start(b, 2)
			brokertest.Produce(b, r.brokers, r.in, brokertest.KV("first", "value"))
			r.caughtUp(b)
			p, err := sarama.NewAsyncProducer(r.brokers, producing())
			must(b, err)
			defer p.Close()
			before, cpu := r.snapshot(), usage()
			n := 0
			for due := 0; b.Loop(); { // an operation is 10 ms
				for due += rate; due >= 100; due -= 100 {
					p.Input() <- message(r.in, n)
					n++
				}
				time.Sleep(10 * time.Millisecond)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
			report(b, r.snapshot(), before, usage()-cpu)
		})
	}
}

func producing() *sarama.Config {
	c := brokertest.Config()
	c.Producer.Return.Successes, c.Producer.Return.Errors = false, false
	return c
}

func message(topic string, n int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("key-%012d", n%100_000)), Value: sarama.ByteEncoder(make([]byte, 100))}
}

func usage() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, now, before counts, cpu time.Duration) {
	s := b.Elapsed().Seconds()
	for _, api := range slices.Sorted(maps.Keys(apiNames)) {
		n := float64(now.requests[api] - before.requests[api])
		b.ReportMetric(n/s, apiNames[api]+"/s")
		if n > 0 {
			b.Logf("%s: %.0f bytes each", apiNames[api], float64(now.sent[api]-before.sent[api])/n)
		}
	}
	b.ReportMetric(float64(now.received-before.received)/s, "received-B/s")
	b.ReportMetric(1000*cpu.Seconds()/s, "cpu-ms/s")
}
