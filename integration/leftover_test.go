package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/topology"
)

func ms(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// leaveOpen begins a transaction as a process does that is then killed: the record is written, nothing is decided, and the
// broker waits for longer than any test does.
func leaveOpen(t *testing.T, id, topic string, r brokertest.Record) {
	t.Helper()
	cfg := brokertest.Config()
	cfg.Producer.Transaction.ID = id
	cfg.Producer.Transaction.Timeout = 5 * time.Minute
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	p, err := sarama.NewSyncProducer(brokertest.Brokers(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.BeginTxn(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(r.Key), Value: sarama.ByteEncoder(r.Value)}); err != nil {
		t.Fatal(err)
	}
}

// A process was killed in a transaction, and another one has committed behind that: a restore goes up to the end of the log,
// past both, without waiting for the transaction to time out. What was not committed is not in the store. So it is with a
// transaction of this process's former life, also of a worker that it does not have any more (field report 66).
func TestFieldReport17OpenTransactionBelowTheEnd(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]func(process string) string{
		"of a dead process":             func(string) string { return uuid.NewString() + "-0" },
		"of the former life":            func(process string) string { return process + "-0" },
		"of a worker of the former one": func(process string) string { return process + "-11" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			log := cfg.ApplicationID + "-counts-changelog"
			counted(t, counting(t, in, out), cfg, in, numbered(10, 10)...)
			process, err := os.ReadFile(filepath.Join(cfg.StateDir, cfg.ApplicationID, "process-id"))
			if err != nil {
				t.Fatal(err)
			}
			leaveOpen(t, cfg.ApplicationID+"-"+owner(strings.TrimSpace(string(process))), log, row("k0", 99))
			newTransactions(t).write(log, true, rows(11, 10)...)
			_, end := logRange(t, log, 0)

			if err := os.RemoveAll(filepath.Join(cfg.StateDir, cfg.ApplicationID, "0_0")); err != nil {
				t.Fatal(err)
			}
			app := start(t, counting(t, in, out), cfg)
			if r := app.restores(1)[0]; r.To < end || r.Records != 20 {
				t.Errorf("restored %+v, want 20 records up to %d", r, end)
			}
			brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("k0", "x"), brokertest.KV("k15", "x"))
			app.drain()
			lastCounted(t, cfg.Brokers, out, 2, 16)
		})
	}
}

// A task restores for longer than a transaction may last, while another one of the same worker goes on: no transaction is
// open meanwhile, and nothing is lost or doubled.
func TestFieldReport6LongRestore(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	cfg.Workers, cfg.TransactionTimeout = 1, time.Second
	log := cfg.ApplicationID + "-counts-changelog"
	to := func(partition int32, n int) []brokertest.Record {
		return slices.Repeat([]brokertest.Record{{Partition: partition, Key: fmt.Appendf(nil, "p%d", partition), Value: []byte("x")}}, n)
	}
	counted(t, counting(t, in, out), cfg, in, to(1, 10)...)

	held, over := make(chan struct{}), make(chan struct{})
	holding, release := sync.OnceFunc(func() { close(held) }), sync.OnceFunc(func() { close(over) })
	defer release()
	w := &wire{request: func(key int16, frame []byte) fate {
		if key == keyFetch && bytes.Contains(frame, []byte(log)) { // of the task with state: the other's changelog is empty
			holding()
			<-over
		}
		return pass
	}}
	cfg.Configure, cfg.StateDir = w.configure, t.TempDir()
	app := start(t, counting(t, in, out), cfg)
	<-held
	began := time.Now()
	sent := 0
	for time.Since(began) < 2*cfg.TransactionTimeout { // so long does the restore take
		brokertest.Produce(t, cfg.Brokers, in, to(0, 1)...)
		sent++
		app.eventually(func() (bool, string) {
			at := brokertest.GroupOffsets(t, cfg.Brokers, cfg.ApplicationID, in)
			return at[0] == int64(sent), fmt.Sprintf("committed %v", at)
		})
	}
	release()
	brokertest.Produce(t, cfg.Brokers, in, slices.Concat(to(0, 5), to(1, 5))...)
	app.drain()
	exactlyCounted(t, out, map[string]int64{"p0": int64(sent + 5), "p1": 15})
	if n := app.log.count("transaction is lost"); n != 0 {
		t.Errorf("%d transactions were lost", n)
	}
}

// All records of a producer are deleted, and the broker may have forgotten the producer with them: then it begins anew.
func TestFieldReport11ProducerIsForgotten(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, brokers []string, in, out string, forget func(topic string)) {
		cfg := config(t)
		cfg.Brokers = brokers
		app := start(t, build(t, func(b *topology.Builder) { hanging(b, spec{In: in, Out: out}, func(string) {}) }), cfg)
		brokertest.Produce(t, brokers, in, numbered(10, 2)...)
		app.drain()
		forget(through(cfg.ApplicationID))
		brokertest.Produce(t, brokers, in, numbered(10, 2)...)
		app.drain()
		var counts []int64
		for _, r := range brokertest.ReadCommitted(t, brokers, out) {
			counts = append(counts, count(t, r))
		}
		slices.Sort(counts)
		if want := []int64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10}; !slices.Equal(counts, want) {
			t.Errorf("counted %v", counts)
		}
	}
	t.Run("records deleted", func(t *testing.T) {
		t.Parallel()
		run(t, brokertest.Brokers(t), brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1), func(topic string) {
			deleteUpTo(t, topic, 0, -1)
		})
	})
	t.Run("producer forgotten", func(t *testing.T) {
		t.Parallel()
		broker := brokertest.Embedded(t)
		for _, topic := range []string{"in", "out"} {
			brokertest.CreateTopic(t, broker.Addrs(), topic, 1, nil)
		}
		run(t, broker.Addrs(), "in", "out", func(topic string) {
			broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.UnknownProducerID, Count: 1})
		})
	})
}
