package measure

import (
	"context"
	"errors"
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
	Broker   int    // process id of a broker that nobody else uses, 0 for none
}

// run is one run of one contender.
type run struct {
	*Runner
	job  contender.Job
	fail context.CancelCauseFunc // ends it
}

// patience bounds a run.
const patience = 10 * time.Minute

// Run runs a contender once. Its table, of what Load has put into the topics, is used only while it runs.
func (r *Runner) Run(ctx context.Context, w work.Workload, c contender.Contender, table *work.Table) (report.Figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the run takes too long"))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	one := &run{Runner: r, fail: fail, job: r.job(w, c)}
	defer one.remove()
	if err := one.prepare(ctx); err != nil {
		return nil, err
	}
	switch w.Measure {
	case work.Throughput:
		return one.throughput(ctx, table)
	case work.Restore:
		return one.restore(ctx)
	case work.Latency:
		return one.latency(ctx)
	case work.Restart:
		return one.restart(ctx)
	case work.Takeover:
		return one.takeover(ctx)
	case work.Rolling:
		return one.rolling(ctx)
	default:
		return nil, fmt.Errorf("no way to measure %s", w.Measure)
	}
}

func (r *Runner) job(w work.Workload, c contender.Contender) contender.Job {
	app := fmt.Sprintf("bench-%s-%s-%d", w.Name, c.Name, time.Now().UnixNano())
	j := contender.Job{
		Workload: w, Contender: c.Name, Brokers: r.Brokers, App: app, Out: app + "-out", Interval: r.Interval, Threads: r.Threads, Instance: "1",
	}
	if w.Topic == "" { // it has an input of its own
		j.Workload.Topic = app + "-in"
	}
	return j
}

// prepare makes what a run needs.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.Profiles != "" {
		if err := os.MkdirAll(r.Profiles, 0o755); err != nil {
			return err
		}
		r.job.Profile = filepath.Join(r.Profiles, r.job.Workload.Name+"-"+r.job.Contender+time.Now().Format("-150405"))
	}
	if r.job.Dir, err = os.MkdirTemp("", "millrace-bench-"); err != nil {
		return err
	}
	debug.FreeOSMemory() // this process is not to stand in the way
	n := r.job.Workload.Partitions
	return errors.Join(r.Cluster.Create(ctx, r.job.Out, n), r.Cluster.Create(ctx, r.job.Workload.Topic, n))
}

// remove removes what a run has made.
func (r *run) remove() {
	err := r.Cluster.RemoveApp(r.job.App)
	if r.job.Dir != "" {
		err = errors.Join(err, os.RemoveAll(r.job.Dir))
	}
	if err != nil {
		slog.Warn("something of a run is left behind", "app", r.job.App, "error", err)
	}
}

// start starts the process of a job, which ends with ctx.
func (r *run) start(ctx context.Context, j contender.Job) (*process, error) {
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
	return begin(cmd, r.fail)
}
