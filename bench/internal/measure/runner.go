package measure

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Runner runs contenders on a cluster.
type Runner struct {
	Brokers  []string
	Cluster  *wire.Cluster
	Peer     *contender.Peer // nil if Java is missing
	Interval time.Duration   // between commits
	Threads  int
	Profiles string // a folder, "" for none
}

// Run runs a contender once. Its table, of what Load has put into the topics, is used only while it runs.
func (r *Runner) Run(ctx context.Context, w work.Workload, c contender.Contender, table *work.Table) (report.Figure, error) {
	j, done, err := r.prepare(ctx, w, c)
	if err != nil {
		return nil, err
	}
	defer done()
	switch w.Measure {
	case work.Throughput:
		return r.throughput(ctx, j, table)
	default:
		return nil, fmt.Errorf("no way to measure %s", w.Measure)
	}
}

// prepare makes what a run needs; done removes it, and what the run has made.
func (r *Runner) prepare(ctx context.Context, w work.Workload, c contender.Contender) (j contender.Job, done func(), err error) {
	app := fmt.Sprintf("bench-%s-%s-%d", w.Name, c.Name, time.Now().UnixNano())
	j = contender.Job{
		Workload: w, Contender: c.Name, Brokers: r.Brokers, App: app, Out: app + "-out", Interval: r.Interval, Threads: r.Threads, Instance: "1",
	}
	if r.Profiles != "" {
		if err := os.MkdirAll(r.Profiles, 0o755); err != nil {
			return j, nil, err
		}
		j.Profile = filepath.Join(r.Profiles, app)
	}
	if j.Dir, err = os.MkdirTemp("", "millrace-bench-"); err != nil {
		return j, nil, err
	}
	done = func() {
		_ = os.RemoveAll(j.Dir)
		if err := r.Cluster.RemoveApp(app); err != nil {
			slog.Warn("topics of a run are left behind", "app", app, "error", err)
		}
	}
	if err := r.Cluster.Create(ctx, j.Out); err != nil {
		done()
		return j, nil, err
	}
	debug.FreeOSMemory() // this process is not to stand in the way
	return j, done, nil
}

// start starts the process of a job.
func (r *Runner) start(ctx context.Context, j contender.Job) (*process, error) {
	c, ok := contender.Find(j.Contender)
	if !ok {
		return nil, fmt.Errorf("no contender %q", j.Contender)
	}
	var cmd *exec.Cmd
	var err error
	if c.Java() {
		cmd = r.Peer.Command(ctx, c, j)
	} else if cmd, err = contender.Command(ctx, j); err != nil {
		return nil, err
	}
	return begin(cmd)
}
