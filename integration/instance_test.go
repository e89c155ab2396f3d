package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// instance is an application that runs in this process.
type instance struct {
	t      *testing.T
	app    *millrace.App
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended
	log    *testLog

	mu       sync.Mutex
	restored []millrace.Restored
	dropped  []dropped
}

// dropped is a bad record that the policy let pass.
type dropped struct {
	err    *processor.RecordError
	action processor.Action
}

// config returns the settings that tests begin with: everything fresh, short commits.
func config(t *testing.T) millrace.Config {
	t.Helper()
	return millrace.Config{
		ApplicationID: brokertest.UniqueName(t, "app"), Brokers: brokertest.Brokers(t), StateDir: t.TempDir(),
		CommitInterval: 20 * time.Millisecond,
	}
}

// start runs the application until stop is called or the test ends.
func start(t *testing.T, topo *topology.Topology, cfg millrace.Config) *instance {
	t.Helper()
	log := &testLog{t: t, since: time.Now()}
	i := &instance{t: t, ended: make(chan struct{}), log: log}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	onRestored, onDropped := cfg.OnRestored, cfg.OnDropped
	cfg.OnRestored = func(r millrace.Restored) {
		if onRestored != nil {
			onRestored(r)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.restored = append(i.restored, r)
	}
	cfg.OnDropped = func(e *processor.RecordError, a processor.Action) {
		if onDropped != nil {
			onDropped(e, a)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.dropped = append(i.dropped, dropped{e, a})
	}
	app, err := millrace.New(topo, cfg)
	if err != nil {
		t.Fatal(err)
	}
	i.app = app
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	go func() {
		defer close(i.ended)
		i.err = app.Run(ctx)
	}()
	t.Cleanup(func() {
		i.cancel()
		i.join()
		log.close()
	})
	return i
}

// stop ends the application in order and fails the test if that is not what happens.
func (i *instance) stop() {
	i.t.Helper()
	i.cancel()
	if err := i.join(); err != nil {
		i.t.Fatalf("Run: %v", err)
	}
}

// join waits until Run has returned, and returns its error.
func (i *instance) join() error {
	i.t.Helper()
	select {
	case <-i.ended:
		return i.err
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		i.t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		i.t.Fatal("Run does not return")
		return nil
	}
}

// alive returns an error when Run has returned.
func (i *instance) alive() error {
	select {
	case <-i.ended:
		return fmt.Errorf("the application ended early: %w", i.err)
	default:
		return nil
	}
}

// eventually waits for a condition while the application runs.
func (i *instance) eventually(cond func() (bool, string)) {
	i.t.Helper()
	brokertest.Eventually(i.t, patience, func() (bool, string) {
		if err := i.alive(); err != nil {
			i.t.Fatal(err)
		}
		return cond()
	})
}

// drain waits until all input is processed and committed.
func (i *instance) drain() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	i.eventually(func() (bool, string) {
		lag, err := i.app.Lag(ctx)
		if err != nil && !errors.Is(err, millrace.ErrNotRunning) {
			i.t.Fatalf("Lag: %v", err)
		}
		return err == nil && lag == 0, fmt.Sprintf("lag is %d (%v)", lag, err)
	})
}

// restores waits until n stores are restored and returns them, sorted by task.
func (i *instance) restores(n int) []millrace.Restored {
	i.t.Helper()
	var all []millrace.Restored
	i.eventually(func() (bool, string) {
		i.mu.Lock()
		defer i.mu.Unlock()
		all = slices.Clone(i.restored)
		return len(all) >= n, fmt.Sprintf("%d of %d stores are restored", len(all), n)
	})
	if len(all) > n {
		i.t.Fatalf("restored %v, want %d stores", all, n)
	}
	slices.SortFunc(all, func(a, b millrace.Restored) int { return int(a.Task.Partition - b.Task.Partition) })
	return all
}

// drops returns the bad records so far.
func (i *instance) drops() []dropped {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.dropped)
}

// testLog hands log lines to the test as long as it runs.
type testLog struct {
	mu    sync.Mutex
	t     *testing.T // nil once closed
	since time.Time
	text  bytes.Buffer
}

// count returns how many lines hold all of the texts.
func (l *testLog) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		holds := true
		for _, text := range texts {
			holds = holds && strings.Contains(line, text)
		}
		if holds {
			n++
		}
	}
	return n
}

// with returns the lines that contain a text.
func (l *testLog) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// Write implements io.Writer.
func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(line)
	if l.t != nil {
		l.t.Logf("%6d ms %s", time.Since(l.since).Milliseconds(), bytes.TrimSpace(line))
	}
	return len(line), nil
}

// logged waits until n lines were logged that have all of the parts in them.
func (i *instance) logged(n int, parts ...string) {
	i.t.Helper()
	i.eventually(func() (bool, string) {
		seen := i.log.count(parts...)
		return seen >= n, fmt.Sprintf("%d of %d lines with %q were logged", seen, n, parts)
	})
}

func (l *testLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t = nil
}
