package integration

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
)

// Whoever calls the application's functions may stop it: it ends in order, whatever it was called from.
func TestFieldReport67StopFromWithin(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"processor", "bad record", "restored"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			cfg.Errors.Process = processor.Skip
			var app atomic.Pointer[instance]
			called := make(chan struct{}, 100)
			stop := func(from string) {
				if from != place {
					return
				}
				for app.Load() == nil {
					time.Sleep(time.Millisecond)
				}
				app.Load().cancel()
				app.Load().cancel() // twice is fine
				called <- struct{}{}
			}
			cfg.OnRestored = func(millrace.Restored) { stop("restored") }
			cfg.OnDropped = func(*processor.RecordError, processor.Action) { stop("bad record") }
			app.Store(start(t, peeking(t, in, out, func(_, value string) {
				if value == "bad" {
					panic("bad")
				}
				stop("processor")
			}), cfg))
			brokertest.Produce(t, cfg.Brokers, in, brokertest.KV("a", "x"), brokertest.KV("a", "bad"))
			<-called
			if err := app.Load().join(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if state, n := members(t, cfg.ApplicationID); n != 0 {
				t.Errorf("the group is %s with %d members", state, n)
			}
			if err := app.Load().app.Run(t.Context()); !errors.Is(err, millrace.ErrAlreadyRun) {
				t.Errorf("a second Run: %v", err)
			}
		})
	}
}

// The brokers are gone when the application is stopped: what can be given up without them is given up within the timeout,
// and no goroutine is left. The application runs in a process of its own, whose goroutines are its alone.
func TestFieldReport67StopWithoutBrokers(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]bool{"all committed": false, "not committed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := brokertest.Embedded(t)
			for _, topic := range []string{"in", "out"} {
				brokertest.CreateTopic(t, broker.Addrs(), topic, 1, nil)
			}
			s := spec{Kind: "leaks-counting", Brokers: broker.Addrs(), App: "app", In: "in", Out: "out", StateDir: t.TempDir(),
				CommitInterval: 20 * time.Millisecond, ShutdownTimeout: time.Second}
			if pending {
				s.CommitInterval = time.Hour
			}
			c := spawn(t, s)
			brokertest.Produce(t, s.Brokers, "in", brokertest.KV("k", "x"))
			c.hears("k x")
			if !pending {
				waitCommitted(t, s.Brokers, s.App, []string{"in"}, func() error { return nil })
			}
			if err := broker.Close(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			c.end()
			err := c.wait()
			if took := time.Since(began); took > patience/2 {
				t.Errorf("the end took %v", took)
			}
			log := c.log.String()
			if strings.Contains(log, "unexpected goroutines") {
				t.Errorf("goroutines are left:\n%s", log)
			}
			if late := strings.Contains(log, "the orderly shutdown took too long"); late != pending || (err != nil) != pending {
				t.Errorf("ended with %v, too late: %t", err, late)
			}
		})
	}
}
