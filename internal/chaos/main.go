package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

// options are the command's flags.
type options struct {
	seed           uint64
	faults         int
	faultsPerRound int
	limit          time.Duration
	mean           time.Duration
	backend        string
	processes      int
	cached         bool
	folder         string
	keep, quiet    bool
	script         string
	port           int
}

func main() {
	if text := os.Getenv(processVariable); text != "" {
		os.Exit(serve(text))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if err := torment(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "`number` from which input and faults follow")
	f.IntVar(&o.faults, "faults", 200, "end after the round in which so many faults have taken effect")
	f.IntVar(&o.faultsPerRound, "round", 50, "faults before everything is healed and checked")
	f.DurationVar(&o.limit, "for", 0, "end after the round in which so much `time` is over; 0 is without limit")
	f.DurationVar(&o.mean, "mean", 800*time.Millisecond, "mean `time` between two faults")
	f.StringVar(&o.backend, "backend", "bolt", "where the state lives: bolt or memory")
	f.IntVar(&o.processes, "processes", 3, "processes of the application")
	f.BoolVar(&o.cached, "cached", false, "hold counts back until a commit, instead of writing each")
	f.StringVar(&o.folder, "dir", "", "`folder` for the broker's data, state and logs; without it a temporary one, which is kept after a failure")
	f.BoolVar(&o.keep, "keep", false, "keep the temporary folder in any case")
	f.BoolVar(&o.quiet, "quiet", false, "tell what happens only after a failure")
	f.StringVar(&o.script, "broker", "scripts/kafka/broker.sh", "`script` that starts and stops a broker")
	f.IntVar(&o.port, "port", 0, "the broker's `port`, and the ports above it; 0 takes free ones")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	return o, nil
}

// torment makes the whole run: a broker, an application, the faults, the report.
func torment(ctx context.Context, o options, out io.Writer) (err error) {
	metrics.UseNilMetrics = true
	sarama.Logger = log.New(io.Discard, "", 0)
	folder := o.folder
	if folder == "" {
		if folder, err = os.MkdirTemp("", "millrace-chaos-"); err != nil {
			return err
		}
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d, folder %s\n", o.seed, folder)
	defer func() {
		if err == nil && o.folder == "" && !o.keep {
			err = os.RemoveAll(folder)
		}
	}()
	var shown io.Writer
	if !o.quiet {
		shown = out
	}
	s := newStory(shown)
	err = experimentIn(ctx, o, s, folder)
	if err != nil && o.quiet {
		for _, line := range s.lines {
			fmt.Fprintln(out, line)
		}
	}
	fmt.Fprintf(out, "seed %d, %v\n%s", o.seed, time.Since(s.run).Round(time.Second), s.summary())
	return err
}

func experimentIn(ctx context.Context, o options, s *story, folder string) (err error) {
	b, err := newBroker(ctx, o.script, filepath.Join(folder, "broker"), o.port, o.processes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	k, err := openKafka(b.addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	app := application{ID: "chaos", Cached: o.cached}
	return newExperiment(o, app, b, k, s, folder).run(ctx)
}
