package example

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
	"github.com/millrace-streams/millrace/store/memory"
)

// Options are the flags that all examples have.
type Options struct {
	name                                     string
	keeps                                    string // what the local state holds, in the plural
	brokers, app, stateDir, store, guarantee string
	commitInterval                           time.Duration
	workers                                  int
	logLevel                                 slog.Level // what is below it is not logged
}

// Flags returns the flags of an example, to which it adds its own. keeps is what it keeps in its local state, in the plural.
func (o *Options) Flags(name, keeps string) *flag.FlagSet {
	o.name, o.keeps = name, keeps
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.StringVar(&o.brokers, "brokers", "", "comma-separated `list` of host:port; without it an embedded broker is started")
	f.StringVar(&o.app, "app", name, "application `id`")
	f.StringVar(&o.stateDir, "state-dir", "", "`folder` for local state and the embedded broker's data, kept over runs, so that\n"+
		keeps+" go on where they were; without it a temporary one, removed at the end")
	f.StringVar(&o.store, "store", "bolt", "where the "+keeps+" live: bolt or memory")
	f.StringVar(&o.guarantee, "guarantee", "exactly_once", "exactly_once or at_least_once")
	f.DurationVar(&o.commitInterval, "commit-interval", 100*time.Millisecond, "longest time between commits")
	f.IntVar(&o.workers, "workers", 0, "number of workers; 0 is one per core")
	return f
}

// Parse parses the arguments. Examples take flags only.
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintf(f.Output(), "%s: %v\n", f.Name(), err)
		f.Usage()
		return err
	}
	return nil
}

// Check reports flags with values that they cannot have.
func (o *Options) Check() error {
	_, err := o.config()
	return err
}

// config turns the flags into the application's configuration. Brokers and StateDir may still be missing. Whatever examples
// are to do about what an application tells of itself, such as its restores, is set here.
func (o *Options) config() (millrace.Config, error) {
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
		Guarantee: guarantee, CommitInterval: o.commitInterval, Workers: o.workers, Logger: o.logger(),
		OnRestoring: restoreProgress(),
	}, nil
}

// logger returns where the application and the embedded broker log to: standard error.
func (o *Options) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
}
