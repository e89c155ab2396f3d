package kafka

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
)

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logged) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// TestPurge: what is committed is deleted, in the own topics alone; a broker that refuses for the moment is asked again, and
// one that forbids it is complained of once.
func TestPurge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    *kerr.Error
		times  int
		warned int
	}{
		"done":      {nil, 0, 0},
		"later":     {kerr.NotLeaderForPartition, 2, 0},
		"forbidden": {kerr.TopicAuthorizationFailed, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := fake(t)
			fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DeleteRecords}, Err: c.err, Count: c.times})
			if c.err == nil {
				fault.Remove()
			}
			brokertest.Produce(t, broker.ListenAddrs(), "in", many(50)...)
			brokertest.Produce(t, broker.ListenAddrs(), "out", many(50)...)
			var log logged
			cfg := options(broker.ListenAddrs(), "app", "p")
			cfg.PurgeInterval, cfg.Logger = 20*time.Millisecond, log.logger(slog.LevelWarn)
			all := append(tasks("in", 1, ""), tasks("out", 1, "")...)
			all[0].Repartition = []string{"in"}
			all[1].ID.Subtopology = 1
			p := start(t, cfg, all...).ports[0]
			leases(t, p, 2)
			for at := range int64(30) {
				mustCommit(t, p, processor.Commit{Positions: []processor.Position{position("in", 0, at+1), position("out", 0, at+1)}})
			}
			brokertest.Eventually(t, patience, func() (bool, string) {
				mustCommit(t, p, processor.Commit{Positions: []processor.Position{position("in", 0, 30)}})
				return broker.PartitionInfo("in", 0).LogStartOffset == 30, "the topic is not purged"
			})
			if at := broker.PartitionInfo("out", 0).LogStartOffset; at != 0 {
				t.Errorf("a topic that is not the application's own starts at %d", at)
			}
			if n := log.count("cannot be purged"); n != c.warned {
				t.Errorf("warned %d times", n)
			}
		})
	}
}

func many(n int) (records []brokertest.Record) {
	for range n {
		records = append(records, brokertest.Record{Value: []byte("v")})
	}
	return records
}
