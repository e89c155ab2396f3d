package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/oracle"
	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store"
)

// flock is a number of scenarios that one application runs side by side, each on topics and in sub-topologies of its own,
// with ends and new beginnings of the application in between.
type flock struct {
	*broker
	random     *rand.Rand
	list       []*placed
	opener     store.Opener
	partitions int32
	id         string // of the application; all names begin with it
	dir        string
	app        *oracle.Application
	seen       atomic.Int64

	life  *life
	tally tally
}

// tally is what has happened to a flock.
type tally struct{ scenarios, lives, dropped, unseen, emptied, restored atomic.Int64 }

// placed is a scenario under the names that it has in its flock.
type placed struct {
	golden
	scenario.Scenario // as it is run
	rounds            [][]numbered
}

// fate is how a life of the application ends.
type fate int

const (
	stopped fate = iota // in good order
	dropped             // wherever it is: what is not committed is lost, a transaction may stay open
	unseen              // after it has processed everything and committed nothing
)

// life is one run of the application.
type life struct {
	app   *millrace.App
	end   context.CancelFunc
	ended chan error
}

// begin starts the application for a life that is to end in a certain way.
func (f *flock) begin(end fate) {
	f.t.Helper()
	cfg := millrace.Config{
		ApplicationID: f.id, Brokers: f.addrs, StateDir: f.dir, Store: f.opener, CachingDisabled: true, Workers: 2,
		CommitInterval: 20 * time.Millisecond, TransactionTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		OnRestored: func(r millrace.Restored) {
			if r.Records > 0 {
				f.tally.restored.Add(1)
			}
		},
	}
	if f.random.IntN(2) == 0 {
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
	f.tally.lives.Add(1)
}

// finish ends the life.
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
	switch end {
	case dropped:
		f.tally.dropped.Add(1)
	case unseen:
		f.tally.unseen.Add(1)
	}
	if f.random.IntN(2) == 0 {
		f.tally.emptied.Add(1)
		if err := os.RemoveAll(f.dir); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wait waits for a condition while the application runs.
func (f *flock) wait(cond func() (bool, string)) {
	f.t.Helper()
	brokertest.Eventually(f.t, patience, func() (bool, string) {
		select {
		case err := <-f.life.ended:
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

// run takes the scenarios through their rounds.
func (f *flock) run() {
	f.t.Helper()
	f.dir = filepath.Join(f.t.TempDir(), "state")
	f.build()
	fates := f.fates()
	f.begin(f.next(fates))
	for i, end := range fates {
		round := f.round(i)
		switch end {
		case stopped:
			f.finish(stopped)
			f.begin(f.next(fates[i+1:]))
			f.send(round)
		case dropped:
			f.send(round)
			f.finish(dropped)
			f.begin(f.next(fates[i+1:]))
		case unseen:
			f.finish(stopped)
			f.begin(unseen)
			f.sendUnseen(round)
			f.finish(unseen)
			f.begin(f.next(fates[i+1:]))
		default:
			f.send(round)
		}
		f.drain()
		f.probe(i)
	}
	f.finish(stopped)
	f.compare()
}
