// Command wordcount counts the words of a topic's lines, exactly once.
//
// With -file it sends the file's lines, waits until all of them are counted and committed, prints word<TAB>count to
// standard output, highest count first, and exits. Without it, it runs until it is interrupted. Without -brokers it
// starts a Kafka of its own inside the process, so that nothing needs to be installed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// options are the command's flags.
type options struct {
	brokers, file, app, in, out, stateDir, store, guarantee string
	commitInterval                                          time.Duration
	workers                                                 int
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	f.StringVar(&o.brokers, "brokers", "", "comma-separated `list` of host:port; without it an embedded broker is started")
	f.StringVar(&o.file, "file", "", "count the lines of this `file`, print the result and exit; \"-\" is standard input")
	f.StringVar(&o.app, "app", "wordcount", "application `id`")
	f.StringVar(&o.in, "in", "lines", "input `topic`; made with 4 partitions if it does not exist")
	f.StringVar(&o.out, "out", "word-counts", "output `topic`; made with 4 partitions if it does not exist")
	f.StringVar(&o.stateDir, "state-dir", "", "`folder` for local state and the embedded broker's data, kept over runs, so that\ncounts go on where they were; without it a temporary one, removed at the end")
	f.StringVar(&o.store, "store", "bolt", "where the counts live: bolt or memory")
	f.StringVar(&o.guarantee, "guarantee", "exactly_once", "exactly_once or at_least_once")
	f.DurationVar(&o.commitInterval, "commit-interval", 100*time.Millisecond, "longest time between commits")
	f.IntVar(&o.workers, "workers", 0, "number of workers; 0 is one per core")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		f.Usage()
		return o, err
	}
	return o, nil
}

// config turns the flags into the application's configuration.
func (o options) config() (millrace.Config, error) {
	stores := map[string]store.Opener{"bolt": bolt.Opener{}, "memory": memory.Opener{}}
	guarantees := map[string]millrace.Guarantee{"exactly_once": millrace.ExactlyOnce, "at_least_once": millrace.AtLeastOnce}
	opener, ok := stores[o.store]
	if !ok {
		return millrace.Config{}, fmt.Errorf("-store %q: want bolt or memory", o.store)
	}
	guarantee, ok := guarantees[o.guarantee]
	if !ok {
		return millrace.Config{}, fmt.Errorf("-guarantee %q: want exactly_once or at_least_once", o.guarantee)
	}
	if o.workers < 0 {
		return millrace.Config{}, fmt.Errorf("-workers %d: want 0 or more", o.workers)
	}
	return millrace.Config{
		ApplicationID: o.app, Brokers: strings.Split(o.brokers, ","), StateDir: o.stateDir, Store: opener,
		Guarantee: guarantee, CommitInterval: o.commitInterval, Workers: o.workers,
	}, nil
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	if _, err := o.config(); err != nil { // before anything is started
		return err
	}
	if _, err := os.Stat(o.file); o.file != "" && o.file != "-" && err != nil {
		return err
	}
	home, cleanUp, err := openHome(&o)
	if err != nil {
		return err
	}
	defer cleanUp()
	cfg, err := o.config()
	if err != nil {
		return err
	}
	topo, err := wordCount(o.in, o.out)
	if err != nil {
		return err
	}
	if err := home.topics(o.in, o.out); err != nil {
		return err
	}
	app, err := millrace.New(topo, cfg)
	if err != nil {
		return err
	}
	if o.file == "" {
		return app.Run(ctx)
	}
	return countFile(ctx, app, home, o, stdout)
}
