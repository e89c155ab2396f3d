package measure

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/report"
)

// steady is how long an application runs under traffic before anything happens to it. Its stores are on disk by then.
const steady = 12 * time.Second

// restart kills the only process and starts it again at once.
func (r *run) restart(ctx context.Context) (report.Figure, error) {
	f, err := r.muster(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer f.disband()
	f.processes[0].drop()
	killed := time.Now()
	outputs := f.outputsSince(killed)
	if err := f.launch(ctx, 0); err != nil {
		return nil, err
	}
	if err := f.traffic.until(ctx, outputs.all); err != nil {
		return nil, err
	}
	figure := outputs.figure(killed, f.processes[0].partitions())
	figure[report.Replayed] = float64(f.processes[0].replayed())
	return figure, f.finish(ctx)
}

// takeover kills one of two processes. First and last are of the partitions that it had.
func (r *run) takeover(ctx context.Context) (report.Figure, error) {
	r.job.Standbys = 1
	f, err := r.muster(ctx, 2)
	if err != nil {
		return nil, err
	}
	defer f.disband()
	survivor, victim := f.processes[0], f.processes[1]
	orphans, before := victim.partitions(), survivor.replayed()
	victim.drop()
	killed := time.Now()
	outputs := f.outputsSince(killed)
	f.processes = f.processes[:1]
	if err := f.traffic.until(ctx, outputs.all); err != nil {
		return nil, err
	}
	figure := outputs.figure(killed, orphans)
	figure[report.Replayed] = float64(survivor.replayed() - before)
	return figure, f.finish(ctx)
}

// rolling restarts three processes in order, one after the other.
func (r *run) rolling(ctx context.Context) (report.Figure, error) {
	r.job.Standbys = 1
	f, err := r.muster(ctx, 3)
	if err != nil {
		return nil, err
	}
	defer f.disband()
	last := make([]time.Time, r.job.Workload.Partitions)
	idle := time.Duration(0)
	began := time.Now()
	gaps := func(a arrival) {
		if last[a.partition].IsZero() {
			last[a.partition] = began
		}
		idle = max(idle, a.at.Sub(last[a.partition]))
		last[a.partition] = a.at
	}
	f.traffic.onArrival(gaps)
	for i := range f.processes {
		if err := f.processes[i].stop(); err != nil {
			return nil, err
		}
		if err := f.launch(ctx, i); err != nil {
			return nil, err
		}
		restarted := time.Now()
		outputs := f.outputsSince(restarted, gaps)
		if err := f.traffic.until(ctx, outputs.all); err != nil {
			return nil, err
		}
		if err := pause(ctx, steady); err != nil {
			return nil, err
		}
	}
	f.traffic.onArrival(func(arrival) {})
	return report.Figure{report.Idle: idle.Seconds()}, f.finish(ctx)
}

// firsts are the times of the partitions' first outputs.
type firsts []time.Time

// outputsSince notes when each partition has the first output of a record that was due after a moment; also are told of all.
func (f *fleet) outputsSince(moment time.Time, also ...func(arrival)) firsts {
	first := make(firsts, f.run.job.Workload.Partitions)
	f.traffic.onArrival(func(a arrival) {
		if first[a.partition].IsZero() && a.due.After(moment) {
			first[a.partition] = a.at
		}
		for _, fn := range also {
			fn(a)
		}
	})
	return first
}

// all tells whether every partition has an output.
func (first firsts) all() bool {
	return !slices.ContainsFunc(first, func(at time.Time) bool { return at.IsZero() })
}

// figure says how long after a moment the first and the last of some partitions had outputs.
func (first firsts) figure(moment time.Time, partitions []int) report.Figure {
	var took []float64
	for _, p := range partitions {
		took = append(took, first[p].Sub(moment).Seconds())
	}
	return report.Figure{report.First: slices.Min(took), report.Whole: slices.Max(took)}
}

// fleet is the processes of one application under traffic.
type fleet struct {
	run       *run
	traffic   *traffic
	processes []*process
}

// muster starts processes one by one, gives each key a count, and lets them run under traffic. disband must be called.
func (r *run) muster(ctx context.Context, n int) (*fleet, error) {
	t, err := newTraffic(ctx, r.job)
	if err != nil {
		return nil, err
	}
	f := &fleet{run: r, traffic: t, processes: make([]*process, n)}
	if err := f.warm(ctx); err != nil {
		f.disband()
		return nil, err
	}
	return f, nil
}

func (f *fleet) warm(ctx context.Context) error {
	for i := range f.processes {
		if err := f.launch(ctx, i); err != nil {
			return err
		}
		if _, err := f.processes[i].await(ctx, "restored", 1); err != nil { // each is to have some of the partitions
			return err
		}
	}
	if err := f.traffic.fill(ctx); err != nil {
		return err
	}
	f.traffic.start()
	return pause(ctx, steady)
}

// launch starts a process, with what its predecessor of this number has left.
func (f *fleet) launch(ctx context.Context, i int) (err error) {
	j := f.run.job
	j.Instance = strconv.Itoa(i + 1)
	j.Dir = filepath.Join(j.Dir, j.Instance)
	f.processes[i], err = f.run.start(ctx, j)
	return err
}

// finish stops the traffic, waits until all is counted, ends the processes in order, and compares the output.
func (f *fleet) finish(ctx context.Context) error {
	if err := f.traffic.finish(ctx); err != nil {
		return err
	}
	for _, p := range f.processes {
		if err := p.stop(); err != nil {
			return err
		}
	}
	return f.run.Cluster.Check(ctx, f.run.job.Out, f.traffic.table())
}

func (f *fleet) disband() {
	for _, p := range f.processes {
		if p != nil {
			p.drop()
		}
	}
	f.traffic.close()
}

// partitions are those whose stores the process has restored.
func (p *process) partitions() (all []int) {
	restored, _ := p.find("restored")
	for _, e := range restored {
		all = append(all, e.partition())
	}
	return all
}
