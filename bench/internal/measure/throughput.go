package measure

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// poll is how often it is looked whether all is committed: a run's end is known no better than that.
const poll = 10 * time.Millisecond

// runPatience bounds a run.
const runPatience = 10 * time.Minute

// throughput measures from the first fetch until all input is committed.
func (r *Runner) throughput(ctx context.Context, j contender.Job, table *work.Table) (report.Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	p, err := r.start(ctx, j)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	began, err := p.await(ctx, "running", nil)
	if err != nil {
		return nil, err
	}
	before := usageOf(p.cmd.Process.Pid)
	ended, err := r.consumed(ctx, j, p)
	if err != nil {
		return nil, err
	}
	after := usageOf(p.cmd.Process.Pid)
	last, err := p.stop()
	if err != nil {
		return nil, err
	}
	f := report.Figure{
		report.Rate: float64(j.Workload.Records) / ended.Sub(began.at).Seconds(),
		report.CPU:  p.cpu().Seconds(), report.Peak: float64(max(after.peak, before.peak)),
	}
	if after.cpu > 0 {
		f[report.CPUWork] = (after.cpu - before.cpu).Seconds()
	} else {
		f[report.Peak] = float64(p.peak())
	}
	for _, e := range last {
		if e.words[0] == "allocated" {
			f[report.Allocs] = e.number()
		}
	}
	if c, _ := contender.Find(j.Contender); c.Silent {
		return f, nil
	}
	return f, r.Cluster.Check(ctx, j.Out, table)
}

// consumed waits until the group has committed all input, or the process says so.
func (r *Runner) consumed(ctx context.Context, j contender.Job, p *process) (time.Time, error) {
	inputs := []string{j.Workload.Topic}
	if j.Workload.Kind == work.Words {
		inputs = append(inputs, j.App+"-"+work.Repartition+"-repartition")
	}
	if j.Workload.Table != "" {
		inputs = append(inputs, j.Workload.Table)
	}
	progress := r.Cluster.Progress(j.App, inputs...)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				return time.Time{}, p.failure(errors.New("it ended early"))
			}
			if e.words[0] == "consumed" {
				return e.at, nil
			}
		case <-tick.C:
			done, err := progress.Done(ctx)
			if done || err != nil {
				return time.Now(), err
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}
