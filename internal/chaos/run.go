package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

// perform makes the whole run: a broker, an application for each backend, the faults, the report.
func perform(ctx context.Context, o options, out io.Writer) (s *story, err error) {
	metrics.UseNilMetrics = true
	sarama.Logger = log.New(io.Discard, "", 0)
	folder, err := folderOf(o)
	if err != nil {
		return nil, err
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
	s = newStory(shown)
	err = experiments(ctx, o, s, folder)
	if err != nil && o.quiet {
		for _, line := range s.lines {
			fmt.Fprintln(out, line)
		}
	}
	fmt.Fprintf(out, "seed %d, %v\n%s", o.seed, time.Since(s.run).Round(time.Second), s.summary())
	return s, err
}

func folderOf(o options) (string, error) {
	if o.folder == "" {
		return os.MkdirTemp("", "millrace-chaos-")
	}
	return filepath.Abs(o.folder)
}

// experiments runs the applications at the same time on one broker.
func experiments(ctx context.Context, o options, s *story, folder string) (err error) {
	b, err := newBroker(ctx, o.script, filepath.Join(folder, "broker"), o.port, mostProcesses*len(o.backends))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	k, err := openKafka(b.addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	errs := make([]error, len(o.backends))
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	ready := newMeeting(len(o.backends))
	var work sync.WaitGroup
	for i := range o.backends {
		work.Go(func() {
			e := newExperiment(o, i, b, k, s, folder)
			if errs[i] = e.run(running, ready); errs[i] != nil {
				e.tell("over: %v", errs[i])
				end(errOtherFailed)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// errOtherFailed ends the applications beside one that has failed.
var errOtherFailed = errors.New("another application has failed")

// meeting is where applications wait for each other: the first faults of one would keep another from ever beginning.
type meeting struct {
	missing atomic.Int64
	all     chan struct{}
}

func newMeeting(n int) *meeting {
	m := &meeting{all: make(chan struct{})}
	m.missing.Store(int64(n))
	return m
}

// join returns when all have come.
func (m *meeting) join(ctx context.Context) error {
	if m.missing.Add(-1) == 0 {
		close(m.all)
	}
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
