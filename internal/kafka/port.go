package kafka

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// Port is one worker's access to the cluster. Its runtime.Port methods are called from one goroutine.
type Port struct {
	worker    int
	cluster   *Cluster
	group     *group
	committer *committer
	subs      map[processor.TopicPartition]*subscription // the worker's own

	// Guarded by the group.
	leaving bool // gets no more tasks, and is to end when it has none left
	told    bool // to end
	closed  bool // the worker has ended

	done chan struct{} // closed with it

	// losses counts the times that leases were lost. A commit made by a worker that did not know of the latest must not be
	// finished: what it holds may be somebody else's by now.
	losses atomic.Int64
	seen   int64 // losses when the worker last polled; the worker's own

	signal chan struct{}
	mu     sync.Mutex
	inbox  runtime.Events
	from   []*subscription // of inbox.Fetched, one by one
	woken  bool
}

func newPort(c *Cluster, worker int) *Port {
	p := &Port{worker: worker, cluster: c, subs: map[processor.TopicPartition]*subscription{}, signal: make(chan struct{}, 1), done: make(chan struct{})}
	p.committer = newCommitter(c, p)
	return p
}

// Poll implements runtime.Port.
func (p *Port) Poll(wait time.Duration) runtime.Events {
	events, some := p.take()
	if some || wait <= 0 {
		return events
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-p.signal:
			if events, some = p.take(); some {
				return events
			}
		case <-timer.C:
			events, _ = p.take()
			return events
		}
	}
}

// take empties the inbox, leaving out what belongs to readings that have ended.
func (p *Port) take() (events runtime.Events, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	events, p.inbox = p.inbox, runtime.Events{}
	p.seen = p.losses.Load()
	current := events.Fetched[:0]
	for i, f := range events.Fetched {
		if !p.from[i].gone.Load() {
			current = append(current, f)
		}
	}
	events.Fetched = current
	clear(p.from)
	p.from = p.from[:0]
	some = p.woken || len(events.Granted)+len(events.Revoked)+len(events.Demoted)+len(events.Lost)+len(events.Fetched)+len(events.Failed) > 0 ||
		events.Commit != nil || events.Stop || events.Fatal != nil
	p.woken = false
	p.postpone(&events)
	return events, some
}

// postpone keeps back a lease whose task's former one ends with the same events: the worker is to see that first.
func (p *Port) postpone(events *runtime.Events) {
	if len(events.Granted) == 0 || len(events.Lost)+len(events.Revoked)+len(events.Demoted) == 0 {
		return
	}
	now := events.Granted[:0:0]
	for _, l := range events.Granted {
		if slices.Contains(events.Lost, l.Task) || slices.Contains(events.Revoked, l.Task) || slices.Contains(events.Demoted, l.Task) {
			p.inbox.Granted = append(p.inbox.Granted, l)
		} else {
			now = append(now, l)
		}
	}
	if events.Granted = now; len(p.inbox.Granted) > 0 {
		signal(p.signal)
	}
}

// lose notes that leases were lost, and tells the worker of those tasks that it knows of.
func (p *Port) lose(tasks []processor.TaskID) {
	p.post(func(e *runtime.Events) {
		e.Lost = append(e.Lost, tasks...)
		p.losses.Add(1)
	})
}

// withdraw takes back a lease that the worker has not seen yet. It reports whether that was so.
func (p *Port) withdraw(task processor.TaskID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.inbox.Granted)
	p.inbox.Granted = slices.DeleteFunc(p.inbox.Granted, func(l runtime.Lease) bool { return l.Task == task })
	return len(p.inbox.Granted) < n
}

// post changes the inbox and wakes the worker.
func (p *Port) post(change func(*runtime.Events)) {
	p.mu.Lock()
	change(&p.inbox)
	p.mu.Unlock()
	signal(p.signal)
}

// deliver puts a batch into the inbox.
func (p *Port) deliver(s *subscription, f runtime.Fetched) {
	p.post(func(e *runtime.Events) {
		e.Fetched = append(e.Fetched, f)
		p.from = append(p.from, s)
	})
}

// failed ends a reading for good.
func (p *Port) failed(s *subscription, err error) {
	p.post(func(e *runtime.Events) {
		if !s.gone.Swap(true) {
			e.Failed = append(e.Failed, runtime.FetchFailed{TopicPartition: s.TopicPartition, Offset: s.position, Err: err, Expired: expired(err)})
		}
	})
}

// Commit implements runtime.Port.
func (p *Port) Commit(c processor.Commit) {
	p.committer.work <- job{commit: c, losses: p.seen}
}

// Release implements runtime.Port. A lease that is released though it is not revoked is looked up and granted again.
func (p *Port) Release(task processor.TaskID) { p.group.release(p, task) }

// Closed implements runtime.Port.
func (p *Port) Closed(task processor.TaskID) { p.group.closed(p, task) }

// Followed implements runtime.Follower.
func (p *Port) Followed(changelog processor.TopicPartition, position int64) {
	p.group.follow(changelog, position)
}

// Working implements runtime.Follower.
func (p *Port) Working(task processor.TaskID) { p.group.working(p, task) }

// Background implements runtime.Port.
func (p *Port) Background(fn func()) {
	p.cluster.work.Go(func() {
		fn()
		p.post(func(*runtime.Events) { p.woken = true })
	})
}

// Fetch implements runtime.Reader.
func (p *Port) Fetch(tp processor.TopicPartition, offset int64) {
	p.StopFetch(tp)
	p.subs[tp] = p.cluster.fetcher.subscribe(p, tp, offset)
}

// StopFetch implements runtime.Reader.
func (p *Port) StopFetch(tp processor.TopicPartition) {
	if s := p.subs[tp]; s != nil {
		s.end()
		delete(p.subs, tp)
	}
}

// Consumed implements runtime.Reader.
func (p *Port) Consumed(tp processor.TopicPartition, bytes int) {
	if s := p.subs[tp]; s != nil && bytes > 0 {
		s.consumed(bytes)
	}
}

// Recycle implements runtime.Recycler.
func (p *Port) Recycle(records []processor.Raw) { p.cluster.fetcher.spares.give(records) }

// Disown takes the leases of a worker that does not end, from another goroutine: others may have its tasks. What it commits
// from now on is refused.
func (p *Port) Disown() {
	p.losses.Add(1)
	p.group.abandon(p)
}

// Close tells that the worker has ended: its leases are held no longer, and nothing is read for it.
func (p *Port) Close() error {
	for _, s := range p.subs {
		s.end()
	}
	clear(p.subs)
	p.group.abandon(p)
	close(p.done)
	return nil
}
