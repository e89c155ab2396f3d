package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// experiment is one application under faults.
type experiment struct {
	options options
	app     application
	broker  *broker
	kafka   *kafka
	story   *story
	slots   []*slot
	writer  *writer

	feeding sync.Mutex // held while a batch of input is written
	fed     int        // batches
}

// How long things may take that come by themselves. They are no measure of anything.
const (
	healWithin = 90 * time.Second
	stopWithin = 40 * time.Second
	feedEvery  = 50 * time.Millisecond
)

// errFailed is returned when the story has failures to tell.
var errFailed = errors.New("the application has failed")

// run runs rounds until so many faults have taken effect, and returns nil if all was well.
func (e *experiment) run(ctx context.Context) error {
	if err := e.createTopics(ctx); err != nil {
		return err
	}
	supervised, end := context.WithCancel(ctx)
	var supervisors sync.WaitGroup
	for _, s := range e.slots {
		supervisors.Go(func() { s.supervise(supervised) })
		s.want(true)
	}
	err := e.rounds(ctx)
	if stopped := e.stopAll(); err == nil && stopped {
		err = e.compare(ctx, "after the end")
	}
	end()
	supervisors.Wait()
	if err == nil && e.story.failed() {
		err = errFailed
	}
	return err
}

func (e *experiment) createTopics(ctx context.Context) error {
	for _, topic := range append(e.app.inputs(), e.app.outputs()...) {
		if err := e.kafka.create(ctx, topic, partitions); err != nil {
			return err
		}
	}
	if err := e.kafka.create(ctx, e.app.users(), globalPartitions); err != nil {
		return err
	}
	p, err := e.kafka.producer()
	if err != nil {
		return err
	}
	return errors.Join(p.SendMessages(messages(e.writer.table(e.app))), p.Close())
}

func (e *experiment) rounds(ctx context.Context) error {
	r := rand.New(rand.NewPCG(e.options.seed, 2))
	began := time.Now()
	for round := 0; ; round++ {
		before, err := e.kafka.settledPositions(ctx, e.app.ID, e.app.consumed())
		if err != nil {
			return err
		}
		e.story.tell("round %d", round)
		if err := e.round(ctx, plan(r, e.options.faultsPerRound, len(e.slots), e.options.mean)); err != nil {
			return err
		}
		if err := e.compare(ctx, fmt.Sprintf("round %d", round)); err != nil {
			return err
		}
		if err := e.moved(ctx, before); err != nil {
			return err
		}
		if e.story.faults() >= e.options.faults || e.options.limit > 0 && time.Since(began) > e.options.limit {
			return nil
		}
		e.writer.nextRound()
	}
}

// round strikes with all of the plan while input comes, heals everything, and waits until the input is worked off.
func (e *experiment) round(ctx context.Context, all []planned) error {
	feeding, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { e.feed(feeding) })
	var faults sync.WaitGroup
	for _, p := range all {
		if !wait(ctx, p.after) || e.story.failed() || e.writer.full() {
			break
		}
		e.story.tell("%s", p.fault)
		faults.Go(func() { e.story.count(p.fault.kind(), p.fault.strike(ctx, e)) })
	}
	faults.Wait()
	e.heal()
	settle := e.fed
	err := eventually(ctx, healWithin, func() error { // some of the input comes when all is well
		if e.batches() < settle+3 {
			return errors.New("no input can be written")
		}
		return nil
	})
	stop()
	work.Wait()
	if err != nil {
		return err
	}
	return e.catchUp(ctx)
}

func (e *experiment) batches() int {
	e.feeding.Lock()
	defer e.feeding.Unlock()
	return e.fed
}

// heal ends what is wrong and not over by itself.
func (e *experiment) heal() {
	for _, s := range e.slots {
		s.proxy.Heal()
	}
	e.story.tell("healed")
}

// catchUp waits until the application has committed all of its input.
func (e *experiment) catchUp(ctx context.Context) error {
	began := time.Now()
	err := eventually(ctx, healWithin, func() error {
		if e.story.failed() {
			return nil
		}
		at, err := e.kafka.committed(e.app.ID, e.app.consumed())
		if err != nil {
			return err
		}
		ends, err := e.kafka.offsets(e.app.consumed(), sarama.OffsetNewest)
		if err != nil {
			return err
		}
		if left := behind(at, ends); len(left) > 0 {
			return fmt.Errorf("not worked off: %s", strings.Join(left, ", "))
		}
		return nil
	})
	if err != nil {
		e.story.fail("after everything was healed: %v", err)
		e.dump()
	}
	if e.story.failed() {
		return errFailed
	}
	e.story.tell("caught up after %v", time.Since(began).Round(time.Millisecond))
	return nil
}

// dump makes every process write its stacks to its log, and end.
func (e *experiment) dump() {
	for _, s := range e.slots {
		if l := s.current(); l != nil {
			l.signal(syscall.SIGQUIT)
		}
	}
}

// compare checks what was written so far.
func (e *experiment) compare(ctx context.Context, when string) error {
	wrong, err := check(ctx, e.kafka, e.app)
	if err != nil {
		return err
	}
	for _, w := range wrong {
		e.story.fail("%s: %s", when, w)
	}
	if len(wrong) > 0 {
		return errFailed
	}
	e.story.tell("%s: all is right", when)
	return nil
}

// moved wants every partition of the input to have gone on.
func (e *experiment) moved(ctx context.Context, before map[place]int64) error {
	after, err := e.kafka.settledPositions(ctx, e.app.ID, e.app.consumed())
	if err != nil {
		return err
	}
	for p, at := range after {
		if at <= before[p] {
			e.story.fail("%s has not moved from %d in this round", p, at)
		}
	}
	return nil
}

// stopAll ends all processes in order, and reports whether that worked.
func (e *experiment) stopAll() bool {
	var work sync.WaitGroup
	for _, s := range e.slots {
		s.want(false)
		if l := s.current(); l != nil {
			work.Go(func() {
				if err := l.stop(stopWithin); err != nil {
					e.story.fail("process %d %v (%s)", s.number, err, l.log)
				}
			})
		}
	}
	work.Wait()
	return !e.story.failed()
}

// feed writes input until ctx ends.
func (e *experiment) feed(ctx context.Context) {
	var p sarama.SyncProducer
	for wait(ctx, feedEvery) && !e.writer.full() {
		err := e.feedBatch(&p)
		if err != nil { // what of the batch was written, the check finds out
			e.story.tell("writing the input failed: %v", err)
			if p != nil {
				_ = p.Close()
			}
			p = nil
		}
	}
	if p != nil {
		_ = p.Close()
	}
}

func (e *experiment) feedBatch(p *sarama.SyncProducer) (err error) {
	e.feeding.Lock()
	defer e.feeding.Unlock()
	if *p == nil {
		if *p, err = e.kafka.producer(); err != nil {
			return err
		}
	}
	e.fed++
	return (*p).SendMessages(messages(e.writer.next(e.app)))
}

// newExperiment prepares an application on a broker; processes begin with run.
func newExperiment(o options, app application, b *broker, k *kafka, s *story, folder string) *experiment {
	e := &experiment{options: o, app: app, broker: b, kafka: k, story: s}
	e.writer = newWriter(o.seed, time.Now().Truncate(time.Hour))
	for i := range o.processes {
		assign := assignment{Application: app, Memory: o.backend == "memory", Workers: 2}
		e.slots = append(e.slots, newSlot(i, filepath.Join(folder, fmt.Sprintf("process-%d", i)), b.proxies[i], assign, s))
	}
	return e
}
