package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rcrowley/go-metrics"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// processVariable holds an assignment, as JSON. A program that finds it runs one process of the application.
const processVariable = "MILLRACE_CHAOS_PROCESS"

// The timeouts are short, so that many faults fit into a minute.
const (
	sessionTimeout     = 3 * time.Second
	transactionTimeout = 3 * time.Second
	shutdownTimeout    = 5 * time.Second
)

// assignment says what a process is to do.
type assignment struct {
	Application application
	Broker      string // the process's own proxy
	StateDir    string
	DiskFile    string // what is wrong with the disk, see disk
	Memory      bool
	AtLeastOnce bool
	Workers     int
}

// serve runs a process of the application until SIGTERM, or until the parent is gone. It returns the exit code. The last
// line of standard error says why the process ended, if it is not in order.
func serve(text string) int {
	metrics.UseNilMetrics = true
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var a assignment
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		err = a.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, endPrefix+oneLine(err.Error()))
		return 1
	}
	return 0
}

// endPrefix begins the line that says why a process ended.
const endPrefix = "ended: "

func (a assignment) run(ctx context.Context) error {
	out := &teller{w: os.Stdout}
	crash := &crasher{tell: out.tell}
	go func() {
		crash.obey(os.Stdin)
		os.Exit(3) // the parent is gone
	}()
	topo, err := a.Application.topology(crash.step)
	if err != nil {
		return err
	}
	app, err := millrace.New(topo, a.config(out))
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

func (a assignment) config(out *teller) millrace.Config {
	c := millrace.Config{
		ApplicationID: a.Application.ID, Brokers: []string{a.Broker}, StateDir: a.StateDir, Workers: a.Workers, Standbys: a.Application.Standbys,
		SessionTimeout: sessionTimeout, TransactionTimeout: transactionTimeout, ShutdownTimeout: shutdownTimeout,
		FlushInterval: 300 * time.Millisecond, // the disk has to be met
		PurgeInterval: -1,                     // what went through the repartition topic is read back
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if !a.Application.Usual {
		c.CommitInterval, c.StagedBytes, c.FlushBytes = 50*time.Millisecond, 64<<10, 256<<10
	}
	if a.AtLeastOnce {
		c.Guarantee = millrace.AtLeastOnce
	}
	if a.Memory {
		c.Store = memory.Opener{}
	} else {
		d := &disk{file: a.DiskFile, tell: out.tell}
		go d.watch()
		c.Store = faultyOpener{store.Opener(bolt.Opener{}), d}
	}
	return c
}

// teller writes lines to the parent.
type teller struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *teller) tell(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.w, line)
}
