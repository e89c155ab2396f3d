package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the command's flags.
type options struct {
	brokers    []string
	brokerDir  string
	records    int
	lines      int
	keys       []int
	runs       int
	only       []string
	interval   time.Duration
	out        string
	cpuProfile string
}

func main() {
	if job, ok := os.LookupEnv(childVariable); ok {
		os.Exit(child(job))
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{}
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	brokers := f.String("brokers", "", "host:port of brokers, comma-separated; without, a broker is started by scripts/kafka/broker.sh")
	keys := f.String("keys", "1000,100000,1000000", "distinct keys of the counts, comma-separated; empty leaves them out")
	only := f.String("only", "", "contenders to run, comma-separated; all if empty")
	f.StringVar(&o.brokerDir, "broker-dir", "", "data of the broker that is started; default is in the temporary folder. It stays, so that inputs are loaded once")
	f.IntVar(&o.records, "records", 2_000_000, "records of each count")
	f.IntVar(&o.lines, "lines", 1_000_000, "lines of the word count; 0 leaves it out")
	f.IntVar(&o.runs, "runs", 3, "runs of each contender")
	f.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between commits")
	f.StringVar(&o.out, "out", "", "file for the figures as JSON")
	f.StringVar(&o.cpuProfile, "cpuprofile", "", "folder for a CPU profile of each run")
	_ = f.Parse(args) // it exits on errors

	o.brokers, o.only = list(*brokers), list(*only)
	for _, k := range list(*keys) {
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-keys: %q is not a positive number", k)
		}
		o.keys = append(o.keys, n)
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(contenders, func(c contender) bool { return c.name == name }) {
			return o, fmt.Errorf("-only: there is no contender %q", name)
		}
	}
	if f.NArg() > 0 || o.runs < 1 || o.records < 1 || o.lines < 0 {
		return o, fmt.Errorf("bad arguments: see -help")
	}
	return o, nil
}

// list splits at commas; nothing is an empty list.
func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// run makes the inputs, runs everything and reports.
func run(ctx context.Context, o options) error {
	if len(o.brokers) == 0 {
		address, stop, err := startBroker(ctx, o.brokerDir)
		if err != nil {
			return err
		}
		defer stop()
		o.brokers = []string{address}
	}
	works := workloads(o)
	for _, w := range works {
		if err := load(ctx, o.brokers, w); err != nil {
			return fmt.Errorf("load %s: %w", w.Topic, err)
		}
	}
	r := newReport(o)
	for _, w := range works {
		if err := measure(ctx, o, w, r); err != nil {
			return err
		}
		r.print(os.Stdout, w)
	}
	if o.out != "" {
		if err := r.write(o.out); err != nil {
			return err
		}
	}
	if n := r.failures(); n > 0 {
		return fmt.Errorf("%d runs have no figure", n)
	}
	return nil
}

// measure runs the contenders of a workload in turn, several times.
func measure(ctx context.Context, o options, w workload, r *report) error {
	want := w.expected()
	for n := range o.runs {
		for _, c := range contenders {
			if len(o.only) > 0 && !slices.Contains(o.only, c.name) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			fig, err := runOnce(ctx, o, w, c, n, want)
			if err != nil { // it has no figure; the others have
				slog.Error("no figure", "workload", w.Name, "contender", c.name, "run", n+1, "error", err)
			} else {
				slog.Info("ran", "workload", w.Name, "contender", c.name, "run", n+1, "seconds", fig.Seconds)
			}
			r.add(w, c, fig, err)
		}
	}
	return nil
}
