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
	name    string // of its backend
	app     application
	broker  *broker
	kafka   *kafka
	story   *story
	slots   []*slot
	writer  *writer

	scaling sync.Mutex // held while a process is added or removed
	feeding sync.Mutex // held while a batch of input is written
	fed     int        // batches

	healed time.Time     // when the latest round's faults were over
	behind time.Duration // how much later all of its input was worked off
}

// How many processes an application has.
const (
	fewestProcesses = 3
	mostProcesses   = 5
)

// How long things may take that come by themselves. They are no measure of anything.
const (
	healWithin = 90 * time.Second
	stopWithin = 40 * time.Second
	feedEvery  = 50 * time.Millisecond
)

// newExperiment prepares an application on a broker; processes begin with run. Applications have numbers from 0 up.
func newExperiment(o options, number int, b *broker, k *kafka, s *story, folder string) *experiment {
	name := o.backends[number]
	app := application{ID: "chaos-" + name, Cached: (o.seed+uint64(number))%2 == 1, Standbys: int((o.seed/2 + uint64(number)) % 2), Usual: (o.seed/4+uint64(number))%2 == 1}
	e := &experiment{options: o, name: name, app: app, broker: b, kafka: k, story: s}
	e.writer = newWriter(o.seed+uint64(number), time.Now().Truncate(time.Hour))
	for i := range mostProcesses {
		memory := name == backendMemory || name == backendMixed && i%2 == 1
		assign := assignment{Application: app, Memory: memory, AtLeastOnce: o.atLeastOnce}
		e.slots = append(e.slots, newSlot(fmt.Sprintf("%s %d", name, i), filepath.Join(folder, fmt.Sprintf("%s-%d", name, i)),
			b.proxies[number*mostProcesses+i], assign, s))
	}
	return e
}

// tell adds to the story.
func (e *experiment) tell(format string, args ...any) {
	e.story.tell("%s", e.name+": "+fmt.Sprintf(format, args...))
}

// errFailed is returned when the story has failures to tell.
var errFailed = errors.New("the application has failed")

// run runs rounds, once all applications are ready, until so many faults have taken effect, and returns nil if all was well.
func (e *experiment) run(ctx context.Context, ready *meeting) error {
	if err := e.createTopics(ctx); err != nil {
		return err
	}
	supervised, end := context.WithCancel(ctx)
	var supervisors sync.WaitGroup
	for i, s := range e.slots {
		supervisors.Go(func() { s.supervise(supervised) })
		s.want(i < fewestProcesses)
	}
	err := e.rounds(ctx, ready)
	if stopped := e.retireAll(ctx); err == nil && stopped {
		err = errors.Join(e.compare(ctx, "after the end"), e.compareFiles(ctx))
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

func (e *experiment) rounds(ctx context.Context, ready *meeting) error {
	if _, err := e.kafka.settledPositions(ctx, e.app.ID, e.app.consumed()); err != nil {
		return err
	}
	if err := ready.join(ctx); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(e.writer.seed, 2))
	began := time.Now()
	for round := 0; ; round++ {
		before, err := e.kafka.settledPositions(ctx, e.app.ID, e.app.consumed())
		if err != nil {
			return err
		}
		e.tell("round %d", round)
		if err := e.round(ctx, plan(r, e.options.faultsPerRound, e.options, e.name != backendMemory)); err != nil {
			return err
		}
		if err := e.compare(ctx, fmt.Sprintf("round %d", round)); err != nil {
			return err
		}
		if err := e.moved(ctx, before); err != nil {
			return err
		}
		e.story.compared(e.behind)
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
		e.broker.spare()
		faults.Go(func() {
			met := p.fault.strike(ctx, e)
			if !met {
				e.tell("met nothing: %s", p.fault)
			}
			e.story.count(p.fault.kind(), met)
		})
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
	e.healed = time.Now()
	e.tell("healed")
}

// catchUp waits until the application has committed all of its input.
func (e *experiment) catchUp(ctx context.Context) error {
	last := ""
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
			last = strings.Join(left, ", ")
			return fmt.Errorf("not worked off: %s", last)
		}
		return nil
	})
	if err != nil {
		e.story.fail(e.name+": after everything was healed: %v", err)
		e.dump()
	}
	if e.story.failed() {
		return errFailed
	}
	e.behind = time.Since(e.healed)
	e.tell("caught up after %v, last: %s", e.behind.Round(time.Millisecond), last)
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
		e.story.fail(e.name+": %s: %s", when, w)
	}
	if len(wrong) > 0 {
		return errFailed
	}
	e.tell("%s: all is right", when)
	return nil
}

// compareFiles checks what the processes have left on their disks.
func (e *experiment) compareFiles(ctx context.Context) error {
	n, wrong, err := checkFiles(ctx, e.kafka, e.app, e.slots)
	if err != nil {
		return err
	}
	for i, w := range wrong {
		if i >= shown {
			break
		}
		e.story.fail("%s: %s", e.name, w)
	}
	if len(wrong) > 0 {
		return errFailed
	}
	e.tell("%d stores' files are right", n)
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
			e.story.fail(e.name+": %s has not moved from %d in this round", p, at)
		}
	}
	return nil
}

// retireAll ends all processes in order, and reports whether that worked.
func (e *experiment) retireAll(ctx context.Context) bool {
	var work sync.WaitGroup
	for _, s := range e.slots {
		work.Go(func() {
			if err := s.retire(context.WithoutCancel(ctx)); err != nil {
				e.story.fail("%s: %v", s, err)
			}
		})
	}
	work.Wait()
	return !e.story.failed()
}

// stop ends a process in order; another one takes its place if it is wanted.
func (e *experiment) stop(s *slot, l *life) {
	if err := l.stop(stopWithin); err != nil {
		e.story.fail("%s: %v (%s)", s, err, l.log)
	}
}

// wanted returns the slots that are to have a process. There are some.
func (e *experiment) wanted() (all []*slot) {
	for _, s := range e.slots {
		if s.isWanted() {
			all = append(all, s)
		}
	}
	return all
}

// add wants one process more, and returns its slot, nil if there are enough.
func (e *experiment) add() *slot {
	e.scaling.Lock()
	defer e.scaling.Unlock()
	for _, s := range e.slots {
		if !s.isWanted() && s.current() == nil {
			s.want(true)
			return s
		}
	}
	return nil
}

// remove ends a process in order that will not come back, and returns its slot, nil if there must not be fewer.
func (e *experiment) remove(ctx context.Context, v victim) *slot {
	e.scaling.Lock()
	defer e.scaling.Unlock()
	if len(e.wanted()) <= fewestProcesses {
		return nil
	}
	s := v.slot(e)
	e.tell("%s: removed", s)
	if err := s.retire(ctx); err != nil {
		e.story.fail("%s: %v", s, err)
	}
	return s
}

// feed writes input until ctx ends.
func (e *experiment) feed(ctx context.Context) {
	var p sarama.SyncProducer
	for wait(ctx, feedEvery) && !e.writer.over() {
		err := e.feedBatch(&p)
		if err != nil { // what of the batch was written, the check finds out
			e.tell("writing the input failed: %v", err)
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
	return (*p).SendMessages(messages(e.writer.batch(e.app)))
}
