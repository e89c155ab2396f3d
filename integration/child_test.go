package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rcrowley/go-metrics"
	"go.uber.org/goleak"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
	"github.com/millrace-streams/millrace/topology"
)

// childVariable holds the spec of a child process, as JSON. The test binary that finds it runs an application, no tests.
const childVariable = "MILLRACE_TEST_CHILD"

// spec says which application a child runs.
type spec struct {
	Kind               string // see kinds
	Brokers            []string
	App, In, Out       string
	StateDir           string
	Memory, AtLeast    bool
	CommitInterval     time.Duration
	FlushInterval      time.Duration
	SessionTimeout     time.Duration
	TransactionTimeout time.Duration
	StagedBytes        int
	Standbys           int
	AcceptableLag      int64
	Quiet              bool // the child tells nothing
	PurgeInterval      time.Duration
	ShutdownTimeout    time.Duration
	Hang               bool // what "hanging" does at the value "hang"
	HangInLoad         int  // the row of a restore's load at which the child hangs, 0: none
}

// kinds are the topologies that a child can run. tell writes a line to the parent.
var kinds = map[string]func(b *topology.Builder, s spec, tell func(string)){
	"wordcount": func(b *topology.Builder, s spec, _ func(string)) { wordCount(b, s.In, s.Out) },
	"leaks":     func(b *topology.Builder, s spec, _ func(string)) { wordCount(b, s.In, s.Out) },
	"ledger": func(b *topology.Builder, s spec, tell func(string)) {
		ledger(topology.From(b, text(s.In)), s.Out, func(key, value string) { tell(key + " " + value) })
	},
	"counting":       toldCounts,
	"leaks-counting": toldCounts,
	"hanging":        hanging,
	"ticker":         func(b *topology.Builder, s spec, tell func(string)) { ticker(b, s.In, tell) },
}

// toldCounts counts, and tells of each record.
func toldCounts(b *topology.Builder, s spec, tell func(string)) {
	countEach(topology.Peek(topology.From(b, text(s.In)), func(key, value string) { tell(key + " " + value) }), s.Out)
}

func (s spec) config() millrace.Config {
	c := millrace.Config{
		ApplicationID: s.App, Brokers: s.Brokers, StateDir: s.StateDir, CommitInterval: s.CommitInterval,
		FlushInterval: s.FlushInterval, SessionTimeout: s.SessionTimeout, TransactionTimeout: s.TransactionTimeout,
		Standbys: s.Standbys, AcceptableLag: s.AcceptableLag,
		StagedBytes: s.StagedBytes, PurgeInterval: s.PurgeInterval, ShutdownTimeout: s.ShutdownTimeout, Store: store.Opener(bolt.Opener{}),
	}
	if s.Memory {
		c.Store = memory.Opener{}
	}
	if s.HangInLoad > 0 {
		c.Store = hangsInLoad{bolt.Opener{Options: bolt.Options{TxBytes: 1 << 18}}, s.HangInLoad}
	}
	if s.AtLeast {
		c.Guarantee = millrace.AtLeastOnce
	}
	return c
}

func (s spec) topology(tell func(string)) (*topology.Topology, error) {
	b := topology.NewBuilder()
	kinds[s.Kind](b, s, tell)
	return b.Build()
}

// hangsInLoad opens files of which a load hangs in the middle, and tells so.
type hangsInLoad struct {
	bolt.Opener
	row int
}

func (o hangsInLoad) Open(dir, name string) (store.Backend, error) {
	b, err := o.Opener.Open(dir, name)
	return hangingLoad{b, o.row}, err
}

type hangingLoad struct {
	store.Backend
	row int
}

func (b hangingLoad) Load(rows iter.Seq[store.Pair], offset int64) error {
	return b.Backend.Load(func(yield func(store.Pair) bool) {
		n := 0
		for row := range rows {
			if n++; n == b.row {
				fmt.Println("hangs in a load")
				select {}
			}
			if !yield(row) {
				return
			}
		}
	}, offset)
}

// runChild runs an application until SIGTERM, or until the parent is gone.
func runChild(text string) int {
	metrics.UseNilMetrics = true
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func (s spec) run(ctx context.Context) error {
	var mu sync.Mutex
	tell := func(line string) {
		if s.Quiet {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(line)
	}
	topo, err := s.topology(tell)
	if err != nil {
		return err
	}
	app, err := millrace.New(topo, s.config())
	if err != nil {
		return err
	}
	before := goleak.IgnoreCurrent()
	err = app.Run(ctx)
	if strings.HasPrefix(s.Kind, "leaks") {
		err = errors.Join(err, goleak.Find(before))
	}
	return err
}

// child is a running child process.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed when the child has ended
	ended bool
	log   *lockedBuffer
}

// spawn starts a child. It is killed when the test ends, if it still runs.
func spawn(t *testing.T, s spec) *child {
	t.Helper()
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 10000), log: &lockedBuffer{}}
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(encoded))
	c.cmd.Stderr = c.log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		if !c.ended {
			c.kill()
		}
		if t.Failed() {
			t.Logf("log of child %d:\n%s", c.cmd.Process.Pid, c.log)
		}
	})
	return c
}

// hears waits for a line that the child tells.
func (c *child) hears(want string) {
	c.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, open := <-c.lines:
			if line == want {
				return
			}
			if !open {
				c.t.Fatalf("the child ended before it told %q", want)
			}
		case <-late:
			c.t.Fatalf("the child does not tell %q", want)
		}
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// alive returns an error when the child has ended, or tells something that nobody waits for.
func (c *child) alive() error {
	select {
	case line, open := <-c.lines:
		return fmt.Errorf("the child ended too early (%t): %s", !open, line)
	default:
		return nil
	}
}

// kill ends the child by SIGKILL, and returns when it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.wait()
}

// end asks the child to end.
func (c *child) end() {
	c.t.Helper()
	c.signal(syscall.SIGTERM)
}

// stop ends the child in order.
func (c *child) stop() {
	c.t.Helper()
	c.end()
	late := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	if err := c.wait(); err != nil {
		c.t.Fatalf("the child did not stop in order: %v", err)
	}
}

func (c *child) wait() error {
	for range c.lines { // Wait must not be called before all is read
	}
	c.ended = true
	return c.cmd.Wait()
}

// lockedBuffer keeps what a child logs.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// String returns the last lines.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(b.data.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
