package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// restore measures how long a process takes that finds a changelog and no store, from the moment that it says so of the first
// partition until the last one is there. That the store is right is shown by counts that go on from it.
func (r *run) restore(ctx context.Context) (report.Figure, error) {
	want, err := r.loadChangelog(ctx)
	if err != nil {
		return nil, err
	}
	partitions := r.job.Workload.Partitions
	p, err := r.start(ctx, r.job)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	began, err := p.await(ctx, "restoring", partitions)
	if err != nil {
		return nil, err
	}
	ended, err := p.await(ctx, "restored", partitions)
	if err != nil {
		return nil, err
	}
	last, records := usageOf(p.cmd.Process.Pid), p.replayed()
	if records != r.job.Workload.Records {
		return nil, fmt.Errorf("%d records were restored instead of %d", records, r.job.Workload.Records)
	}
	if err := r.probe(ctx, p, want); err != nil {
		return nil, err
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	f := report.Figure{report.Rate: float64(records) / ended[partitions-1].at.Sub(began[0].at).Seconds()}
	p.used(f, last)
	return f, r.Cluster.Check(ctx, r.job.Out, work.Counts(want))
}

// replayed is how many records of changelogs the process has read.
func (p *process) replayed() int {
	records := 0.0
	restored, _ := p.find("restored")
	for _, e := range restored {
		records += e.number()
	}
	return int(records)
}

// stride is prime: it goes through the keys in no order.
const stride = 7919

// loadChangelog writes a changelog of counts, the last of which it returns.
func (r *run) loadChangelog(ctx context.Context) ([]int64, error) {
	changelog := r.job.App + "-" + work.Store + "-changelog"
	if err := r.Cluster.CreateCompacted(ctx, changelog, r.job.Workload.Partitions); err != nil {
		return nil, err
	}
	counts := make([]int64, r.job.Workload.Distinct)
	l := wire.NewLoader(r.Cluster, changelog, r.job.Workload.Partitions)
	at := time.Now()
	for i := range r.job.Workload.Records {
		n := i * stride % len(counts)
		counts[n]++
		if err := l.Add([]byte(work.Word(n)), binary.BigEndian.AppendUint64(nil, uint64(counts[n])), at); err != nil {
			return nil, err
		}
	}
	return counts, l.Send()
}

// probed is one of how many keys gets another record.
const probed = 1000

// probe sends records of some keys, waits until they are counted, and makes want what the output must be.
func (r *run) probe(ctx context.Context, p *process, want []int64) error {
	l := wire.NewLoader(r.Cluster, r.job.Workload.Topic, r.job.Workload.Partitions)
	for n := range want {
		if n%probed != 0 {
			want[n] = 0 // no output
			continue
		}
		want[n]++
		if err := l.Add([]byte(work.Word(n)), []byte("v"), time.Now()); err != nil {
			return err
		}
	}
	if err := l.Send(); err != nil {
		return err
	}
	_, err := r.consumed(ctx, p)
	return err
}
