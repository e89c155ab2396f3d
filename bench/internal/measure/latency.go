package measure

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/report"
)

// warmup is how long records are sent before any is timed.
const warmup = 5 * time.Second

// latency measures from the moment a record is due to be sent until a reader of committed records has its count.
func (r *run) latency(ctx context.Context) (report.Figure, error) {
	p, err := r.start(ctx, r.job)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	if _, err := p.await(ctx, "running", 1); err != nil {
		return nil, err
	}
	t, err := newTraffic(ctx, r.job)
	if err != nil {
		return nil, err
	}
	defer t.close()
	var took []time.Duration
	timed := time.Now().Add(warmup)
	t.onArrival(func(a arrival) {
		if a.due.Before(timed) {
			return
		}
		for range a.skipped + 1 { // a later count shows the earlier ones too
			took = append(took, a.at.Sub(a.due))
		}
	})
	t.start()
	if err := pause(ctx, warmup+r.job.Workload.Duration); err != nil {
		return nil, err
	}
	if err := t.finish(ctx); err != nil {
		return nil, err
	}
	last := usageOf(p.cmd.Process.Pid)
	if err := p.stop(); err != nil {
		return nil, err
	}
	t.onArrival(func(arrival) {})
	if len(took) == 0 {
		return nil, errors.New("no record was timed")
	}
	slices.Sort(took)
	f := report.Figure{report.P50: percentile(took, 50), report.P95: percentile(took, 95), report.P99: percentile(took, 99)}
	p.used(f, last)
	return f, r.Cluster.Check(ctx, r.job.Out, t.table())
}

// percentile returns the time within which so many percent came, in ms.
func percentile(sorted []time.Duration, percent int) float64 {
	return float64(sorted[(len(sorted)-1)*percent/100]) / float64(time.Millisecond)
}
