// Package example holds what the example programs share: their flags, the broker that they run on, records in and out,
// waiting for the end, and the way in which a sample and what comes of it are shown.
package example

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Main is the main function of an example: parse makes options of the arguments, and says itself what is wrong with them;
// run does the work until it is through or until its context ends. The exit code is 0 when the work is done or help was
// asked for, 2 for arguments that cannot be understood, and 1 for everything else that went wrong, an interrupt before the
// end included. A second interrupt ends the program at once, if it comes a second or more after the first: some who stop
// programs send the same signal to a process and to its group.
func Main[O any](name string, parse func(args []string) (O, error), run func(context.Context, O, io.Writer) error) {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
