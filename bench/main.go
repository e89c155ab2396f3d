package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/measure"
	"github.com/millrace-streams/millrace/bench/internal/report"
	"github.com/millrace-streams/millrace/bench/internal/wire"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

func main() {
	contender.Child()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "model" {
		if err := modelled(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	o, err := parse(os.Args[1:])
	if err == nil {
		if o.list {
			o.print(os.Stdout)
			return
		}
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs everything that was asked for, and reports.
func run(ctx context.Context, o options) error {
	broker := 0
	if len(o.brokers) == 0 {
		b, err := wire.StartBroker(ctx, o.brokerDir)
		if err != nil {
			return err
		}
		defer b.Stop()
		o.brokers, broker = []string{b.Address}, b.PID
	}
	cluster, err := wire.Open(o.brokers)
	if err != nil {
		return err
	}
	defer cluster.Close()
	r := &measure.Runner{Brokers: o.brokers, Cluster: cluster, Interval: o.interval, Threads: o.threads, Profiles: o.profiles, Broker: broker}
	if broker != 0 {
		if err := o.warm(ctx, r); err != nil {
			return err
		}
	}
	rep := o.report()
	rep.KafkaStreams = o.streams(ctx, r)
	for _, w := range o.workloads {
		if err := o.measure(ctx, r, w, rep.Section(w)); err != nil {
			return err
		}
		rep.Section(w).Print(os.Stdout)
		rep.Took = time.Since(rep.Started)
		rep.Judge()
		if err := o.write(rep); err != nil { // what there is stays if the rest is interrupted
			return err
		}
	}
	rep.PrintAims(os.Stdout)
	fmt.Printf("took %v\n", rep.Took.Round(time.Second))
	if n := rep.Failures(); n > 0 {
		return fmt.Errorf("%d runs have no figure", n)
	}
	return nil
}

// warm keeps a broker busy that has just been started: in its first minute, while its code is compiled, it takes several
// times the CPU, and whoever is measured first would pay for that.
func (o options) warm(ctx context.Context, r *measure.Runner) error {
	w := work.All(work.Size(o.scale))[0]
	c, _ := contender.Find(contender.Plain)
	if o.warmUp <= 0 {
		return nil
	}
	began := time.Now()
	base, err := wire.Load(ctx, r.Cluster, w)
	if err != nil {
		return fmt.Errorf("load %s: %w", w.Topic, err)
	}
	slog.Info("the broker warms up", "for", o.warmUp)
	for table := w.Expected(base); time.Since(began) < o.warmUp; {
		if _, err := r.Run(ctx, w, c, table); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	return nil
}

func (o options) report() *report.Report {
	return &report.Report{
		Started: time.Now().UTC(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(),
		Threads: o.threads, Interval: o.interval.String(), Scale: o.scale,
	}
}

// streams makes Kafka Streams ready, if it is to run, and returns its version or why there is none.
func (o options) streams(ctx context.Context, r *measure.Runner) string {
	for _, w := range o.workloads {
		for _, c := range o.contenders {
			if !c.Java() || !c.Can(w) {
				continue
			}
			peer, err := contender.BuildPeer(ctx, o.peer, o.java)
			if err != nil {
				slog.Error("only what is in Go is run", "error", err)
				return err.Error()
			}
			r.Peer = peer
			return peer.Version()
		}
	}
	return "not run"
}

// measure runs the contenders of a workload in turn, several times.
func (o options) measure(ctx context.Context, r *measure.Runner, w work.Workload, s *report.Section) error {
	var table *work.Table
	if w.Topic != "" {
		base, err := wire.Load(ctx, r.Cluster, w)
		if err != nil {
			return fmt.Errorf("load %s: %w", w.Topic, err)
		}
		table = w.Expected(base)
	}
	took := map[string]time.Duration{}
	for n := range o.runs {
		for _, c := range o.contenders {
			if !c.Can(w) || c.Java() && r.Peer == nil || n >= slowRuns && took[c.Name] > o.slow {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			began := time.Now()
			fig, err := r.Run(ctx, w, c, table)
			took[c.Name] = time.Since(began)
			if err != nil { // it has no figure; the others have
				slog.Error("no figure", "workload", w.Name, "contender", c.Name, "run", n+1, "error", err)
			} else {
				slog.Info("ran", "workload", w.Name, "contender", c.Name, "run", n+1, "took", took[c.Name].Round(time.Second/10))
			}
			s.Add(c.Name, fig, err)
		}
	}
	return nil
}

// slowRuns is how many runs a slow contender has.
const slowRuns = 2

// write writes the files that were asked for.
func (o options) write(rep *report.Report) error {
	var errs []error
	if o.json != "" {
		errs = append(errs, rep.Write(o.json))
	}
	if o.html != "" {
		errs = append(errs, rep.WritePage(o.html))
	}
	return errors.Join(errs...)
}
