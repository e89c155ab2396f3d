package measure

import (
	"context"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// throughput measures from the first fetch until all input is committed.
func (r *run) throughput(ctx context.Context, table *work.Table) (report.Figure, error) {
	p, err := r.start(ctx, r.job)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	began, err := p.await(ctx, "running", 1)
	if err != nil {
		return nil, err
	}
	before, broker := usageOf(p.cmd.Process.Pid), usageOf(r.Broker)
	ended, err := r.consumed(ctx, p)
	if err != nil {
		return nil, err
	}
	after, brokerAfter := usageOf(p.cmd.Process.Pid), usageOf(r.Broker)
	if err := p.stop(); err != nil {
		return nil, err
	}
	f := report.Figure{report.Rate: float64(r.job.Workload.Records) / ended.Sub(began[0].at).Seconds()}
	p.used(f, after)
	if after.cpu > 0 {
		f[report.CPUWork] = (after.cpu - before.cpu).Seconds()
	}
	if brokerAfter.cpu > 0 {
		f[report.Broker] = (brokerAfter.cpu - broker.cpu).Seconds()
	}
	if allocated, _ := p.find("allocated"); len(allocated) > 0 {
		f[report.Allocs] = allocated[0].number()
	}
	if c, _ := contender.Find(r.job.Contender); c.Silent {
		return f, nil
	}
	return f, r.Cluster.Check(ctx, r.job.Out, table)
}

// poll is how often it is looked whether all is committed: a run's end is known no better than that.
const poll = 10 * time.Millisecond

// consumed waits until the group has committed all input, or the process says so.
func (r *run) consumed(ctx context.Context, p *process) (time.Time, error) {
	w := r.job.Workload
	inputs := []string{w.Topic}
	if w.Kind == work.Words {
		inputs = append(inputs, r.job.App+"-"+work.Repartition+"-repartition")
	}
	if w.Table != "" {
		inputs = append(inputs, w.Table)
	}
	progress := r.Cluster.Progress(r.job.App, w.Partitions, inputs...)
	for {
		if said, _ := p.find("consumed"); len(said) > 0 {
			return said[0].at, nil
		}
		done, err := progress.Done(ctx)
		if done || err != nil {
			return time.Now(), err
		}
		if err := pause(ctx, poll); err != nil {
			return time.Time{}, err
		}
	}
}

// pause lets things be.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
