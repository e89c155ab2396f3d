package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

// fate is how a life of an application ends.
type fate int

const (
	on      fate = iota // it goes on
	stopped             // in good order
	dropped             // wherever it is: what is not committed is lost, a transaction may stay open
	unseen              // after it has processed everything and committed nothing
)

// life is one run of an application.
type life struct {
	app   *millrace.App
	end   context.CancelFunc
	ended chan error
}

// begin starts the application for a life that is to end in a certain way.
func (f *flock) begin(end fate) {
	f.t.Helper()
	cfg := millrace.Config{
		ApplicationID: f.id, Brokers: f.addrs, StateDir: f.dir, Store: f.opener, CachingDisabled: !f.cached, Workers: 2,
		CommitInterval: 20 * time.Millisecond, TransactionTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		OnRestored: func(r millrace.Restored) {
			if r.Records > 0 {
				f.restored.Add(1)
			}
		},
	}
	if f.chance(50) {
		cfg.FlushInterval = time.Millisecond // what is committed is on disk soon
	}
	if end != stopped {
		cfg.ShutdownTimeout = time.Millisecond
	}
	if end == unseen {
		cfg.CommitInterval = time.Hour
	}
	app, err := millrace.New(f.app.Topology, cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.life = &life{app: app, end: cancel, ended: make(chan error, 1)}
	go func(l *life) { l.ended <- l.app.Run(ctx) }(f.life)
	f.lives++
}

// finish ends the life, and removes the local state every other time.
func (f *flock) finish(end fate) {
	f.t.Helper()
	f.life.end()
	select {
	case err := <-f.life.ended:
		if end == stopped && err != nil {
			f.t.Fatalf("Run: %v", err)
		}
	case <-time.After(patience):
		f.t.Fatal("Run does not return")
	}
	f.life = nil
	f.ends[end]++
	if f.chance(50) {
		f.empty()
	}
}

// empty removes the local state.
func (f *flock) empty() {
	f.t.Helper()
	f.emptied++
	if err := os.RemoveAll(f.dir); err != nil {
		f.t.Fatal(err)
	}
}

// abort ends a life that a failed test has left behind.
func (f *flock) abort() {
	if f.life != nil {
		f.life.end()
		<-f.life.ended
	}
}

// wait waits for a condition while the application runs.
func (f *flock) wait(cond func() (bool, string)) {
	f.t.Helper()
	brokertest.Eventually(f.t, patience, func() (bool, string) {
		select {
		case err := <-f.life.ended:
			f.life = nil
			f.t.Fatalf("the application has ended: %v", err)
		default:
		}
		return cond()
	})
}

// drain waits until all that is on the topics is processed and committed.
func (f *flock) drain() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.wait(func() (bool, string) {
		lag, err := f.life.app.Lag(ctx)
		if err != nil && !errors.Is(err, millrace.ErrNotRunning) {
			f.t.Fatal(err)
		}
		return err == nil && lag == 0, fmt.Sprintf("lag is %d (%v)", lag, err)
	})
}
