package kafka

import (
	"net"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
)

// TestLagWhileARecordMovesOn has a record of one topic processed into another between the two questions of which a lag is
// made. The second topic is then not read to its end, and the lag not 0.
func TestLagWhileARecordMovesOn(t *testing.T) {
	t.Parallel()
	first, second := brokertest.Topic(t, "first", 1), brokertest.Topic(t, "second", 1)
	cfg := options(brokertest.Brokers(t), brokertest.UniqueName(t, "app"), "p")
	commitOffset(t, cfg, first, 0)
	brokertest.Produce(t, cfg.Brokers, first, brokertest.KV("k", "v"))
	moving := &meanwhile{then: func() {
		brokertest.Produce(t, cfg.Brokers, second, brokertest.KV("k", "v"))
		commitOffset(t, cfg, first, 1)
	}}
	cfg.Configure = moving.configure
	c := open(t, cfg)
	lag, err := c.Lag(t.Context(), []processor.TopicPartition{{Topic: first}, {Topic: second}})
	if err != nil || lag == 0 {
		t.Errorf("lag %d (%v), though the second topic is not read", lag, err)
	}
	if !moving.done {
		t.Error("the record has not moved")
	}
}

// commitOffset commits an offset for the group, as if by a member.
func commitOffset(t *testing.T, cfg Config, topic string, offset int64) {
	t.Helper()
	client, err := sarama.NewClient(cfg.Brokers, brokertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	coordinator, err := client.Coordinator(cfg.App)
	if err != nil {
		t.Fatal(err)
	}
	req := &sarama.OffsetCommitRequest{Version: 2, ConsumerGroup: cfg.App, ConsumerGroupGeneration: -1, RetentionTime: -1}
	req.AddBlock(topic, 0, offset, 0, "")
	resp, err := coordinator.CommitOffset(req)
	if err != nil || resp.Errors[topic][0] != sarama.ErrNoError {
		t.Fatal(resp, err)
	}
}

// API keys of the two questions.
const (
	keyListOffsets = 2
	keyOffsetFetch = 9
)

// meanwhile does something once, after the answer to the first question and before the next is asked.
type meanwhile struct {
	then func()
	mu   sync.Mutex
	done bool
}

func (m *meanwhile) configure(conf *sarama.Config) {
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = m
}

// Dial connects.
func (m *meanwhile) Dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	return &pausedConn{Conn: conn, m: m}, err
}

type pausedConn struct {
	net.Conn
	m     *meanwhile
	asked int
}

// Write sends a request: sarama writes each in one piece, its length first and then its API key.
func (c *pausedConn) Write(p []byte) (int, error) {
	if len(p) >= 6 {
		c.m.mu.Lock()
		switch int16(p[4])<<8 | int16(p[5]) {
		case keyListOffsets: // once for the beginnings, once for the ends
			c.asked++
		case keyOffsetFetch:
			c.asked = 2
		}
		c.m.mu.Unlock()
	}
	return c.Conn.Write(p)
}

// Read reads an answer.
func (c *pausedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.asked == 2 && !c.m.done && err == nil {
		c.m.done = true
		c.m.then()
	}
	return n, err
}
