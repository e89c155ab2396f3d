package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// The backends.
const (
	backendBolt   = "bolt"
	backendMemory = "memory"
)

// options are the command's flags.
type options struct {
	seed           uint64
	faults         int
	faultsPerRound int
	limit          time.Duration
	mean           time.Duration
	backends       []string
	only           *regexp.Regexp // nil: all
	atLeastOnce    bool
	anyPage        bool
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
	if _, err := perform(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{backends: []string{backendBolt, backendMemory}}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "`number` from which input and faults follow")
	f.IntVar(&o.faults, "faults", 200, "end after the round in which so many faults have taken effect")
	f.IntVar(&o.faultsPerRound, "round", 50, "faults before everything is healed and checked")
	f.DurationVar(&o.limit, "for", 0, "end after the round in which so much `time` is over; 0 is without limit")
	f.DurationVar(&o.mean, "mean", 800*time.Millisecond, "mean `time` between two faults")
	f.Func("backend", "where the state lives: `bolt`, memory, or bolt,memory (the default), which are two applications on one broker", func(text string) error {
		o.backends = strings.Split(text, ",")
		for _, b := range o.backends {
			if b != backendBolt && b != backendMemory {
				return fmt.Errorf("want bolt or memory, not %q", b)
			}
		}
		return nil
	})
	f.Func("only", "strike with those faults alone whose kind matches the `expression`", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err
	})
	f.BoolVar(&o.anyPage, "any-page", false, "damage any page of a store's file, not only what shows when it is opened")
	f.BoolVar(&o.atLeastOnce, "at-least-once", false, "run the application without the exactly-once guarantee, to see that doubled records are found")
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
