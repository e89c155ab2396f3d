package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// childVariable is the environment variable that makes this program run one job instead of the benchmark.
const childVariable = "MILLRACE_BENCH_JOB"

// figure is what one run showed. A child process prints it as JSON.
type figure struct {
	Seconds    float64 `json:"seconds"`     // from the first fetch to the last commit
	CPUSeconds float64 `json:"cpu_seconds"` // user and system time of the whole process
	PeakBytes  int64   `json:"peak_bytes"`  // largest resident set
	Allocs     float64 `json:"allocs"`      // heap allocations per input record, between first fetch and last commit
}

// mark is a moment of a run.
type mark struct {
	at     time.Time
	allocs uint64
}

func now() mark {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return mark{at: time.Now(), allocs: m.Mallocs}
}

// child runs one job and returns the exit code.
func child(text string) int {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		var f figure
		if f, err = perform(ctx, j); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(f)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func perform(ctx context.Context, j job) (figure, error) {
	if j.Profile != "" {
		f, err := os.Create(j.Profile)
		if err != nil {
			return figure{}, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return figure{}, err
		}
		defer pprof.StopCPUProfile()
	}
	c := contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.name == j.Contender })]
	s, err := c.run(ctx, j)
	if err != nil {
		return figure{}, err
	}
	return figure{
		Seconds: s.ended.at.Sub(s.began.at).Seconds(), PeakBytes: peak(),
		Allocs: float64(s.ended.allocs-s.began.allocs) / float64(j.Workload.Records),
	}, nil
}

// runOnce runs a job in a process of its own, checks its table and removes its topics.
func runOnce(ctx context.Context, o options, w workload, c contender, n int, want []int64) (figure, error) {
	j, done, err := prepare(ctx, o, w, c, n)
	if err != nil {
		return figure{}, err
	}
	defer done()
	f, err := spawn(ctx, j)
	if err == nil && c.tables {
		err = check(ctx, j, want)
	}
	return f, err
}

// prepare makes what a run needs; done removes it, and what the run has made.
func prepare(ctx context.Context, o options, w workload, c contender, n int) (j job, done func(), err error) {
	app := fmt.Sprintf("bench-%s-%d", c.name, time.Now().UnixNano())
	j = job{Workload: w, Contender: c.name, Brokers: o.brokers, App: app, Out: app + "-out", Interval: o.interval}
	if o.cpuProfile != "" {
		if err := os.MkdirAll(o.cpuProfile, 0o755); err != nil {
			return j, nil, err
		}
		j.Profile = filepath.Join(o.cpuProfile, fmt.Sprintf("%s-%d-%s-%d.cpu", w.Kind, w.Distinct, c.name, n+1))
	}
	if j.Dir, err = os.MkdirTemp("", "millrace-bench-"); err != nil {
		return j, nil, err
	}
	done = func() {
		_ = os.RemoveAll(j.Dir)
		if err := removeTopics(o.brokers, j.App, append(j.internalTopics(), j.Out)); err != nil {
			slog.Warn("topics of a run are left behind", "app", j.App, "error", err)
		}
	}
	if err := createTopic(ctx, o.brokers, j.Out, nil); err != nil {
		done()
		return j, nil, err
	}
	return j, done, nil
}

func spawn(ctx context.Context, j job) (figure, error) {
	self, err := os.Executable()
	if err != nil {
		return figure{}, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return figure{}, err
	}
	debug.FreeOSMemory() // this process is not to stand in the way
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return figure{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		slog.Warn("a run had something to say", "contender", j.Contender, "said", text)
	}
	var f figure
	if err := json.Unmarshal(stdout.Bytes(), &f); err != nil {
		return figure{}, fmt.Errorf("the figures of the run: %w", err)
	}
	f.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return f, nil
}
