package kafka

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// fetcher reads partitions for all workers: one goroutine finds their leaders, a few per leader read.
type fetcher struct {
	cluster *Cluster
	wake    chan struct{} // a subscription is homeless
	spares  spares

	mu       sync.Mutex
	homeless []*subscription
	loops    map[lane]*fetchLoop
	running  bool

	trouble trouble // of subscriptions that cannot be read for the moment
}

// lane is a share of a broker's partitions, read over a connection of its own. While the response of one lane is taken
// apart, the broker makes that of the other: with one lane alone, half of the time nobody reads.
type lane struct {
	addr   string
	number int
}

const lanesPerLeader = 2

func laneOf(addr string, tp processor.TopicPartition) lane {
	return lane{addr, int(tp.Partition) % lanesPerLeader}
}

// subscription is one reading of a partition, from the call of Fetch to the next one or StopFetch.
type subscription struct {
	processor.TopicPartition
	port  *Port
	gone  atomic.Bool               // nothing of it may be delivered any more
	held  atomic.Int64              // bytes delivered or queued, but not consumed
	loop  atomic.Pointer[fetchLoop] // to be woken when held falls
	limit int64                     // of held

	// The rest belongs to whoever has it: the router or a loop.
	position  int64
	maxBytes  int32
	failures  int
	due       time.Time // not to be placed before
	unknown   time.Time // since when its topic is unknown, zero if it is not
	oldLeader bool      // its leader has to be looked up anew
}

func newFetcher(c *Cluster) *fetcher {
	return &fetcher{
		cluster: c, wake: make(chan struct{}, 1), loops: map[lane]*fetchLoop{},
		trouble: trouble{log: c.cfg.Logger, what: "partitions cannot be read for the moment, trying again", over: "all partitions can be read again"},
	}
}

// subscribe starts to read a partition.
func (f *fetcher) subscribe(p *Port, tp processor.TopicPartition, offset int64) *subscription {
	s := &subscription{TopicPartition: tp, port: p, position: offset, limit: int64(f.cluster.cfg.BufferBytes), maxBytes: int32(f.cluster.cfg.MaxFetchBytes)}
	f.rehome([]*subscription{s})
	return s
}

// end stops the reading: what is under way will not be delivered.
func (s *subscription) end() {
	s.gone.Store(true)
	s.awaken()
}

// consumed makes room.
func (s *subscription) consumed(bytes int) {
	held := s.held.Add(-int64(bytes))
	if held < 0 { // told twice, or about a former reading
		s.held.CompareAndSwap(held, 0)
	}
	if held < s.limit && held+int64(bytes) >= s.limit {
		s.awaken()
	}
}

func (s *subscription) awaken() {
	if l := s.loop.Load(); l != nil {
		signal(l.wake)
	}
}

// full reports whether its reader is so far behind that it is left out.
func (s *subscription) full() bool { return s.held.Load() >= s.limit }

// failed notes that a subscription could not be read, and when to try again.
func (s *subscription) failed() {
	s.oldLeader = true
	s.due = time.Now().Add(min(firstPause<<min(s.failures, 6), lastPause))
	s.failures++
}

// rehome hands subscriptions to the router.
func (f *fetcher) rehome(subs []*subscription) {
	f.mu.Lock()
	f.homeless = append(f.homeless, subs...)
	if !f.running && f.cluster.ctx.Err() == nil {
		f.running = true
		f.cluster.work.Go(f.route)
	}
	f.mu.Unlock()
	signal(f.wake)
}

// route finds a loop for every subscription that has none.
func (f *fetcher) route() {
	for {
		due, next := f.takeDue(time.Now())
		f.place(due)
		wait := time.Until(next)
		if next.IsZero() {
			wait = time.Hour
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-f.wake:
		case <-timer.C:
		case <-f.cluster.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// takeDue returns the subscriptions that may be placed now, and when the next of the others may, zero if there is none.
func (f *fetcher) takeDue(now time.Time) (due []*subscription, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	later := f.homeless[:0]
	for _, s := range f.homeless {
		switch {
		case s.gone.Load():
			f.trouble.forget(s)
		case s.due.After(now):
			later = append(later, s)
			if next.IsZero() || s.due.Before(next) {
				next = s.due
			}
		default:
			due = append(due, s)
		}
	}
	clear(f.homeless[len(later):])
	f.homeless = later
	return due, next
}

// place hands subscriptions to the loops of their leaders.
func (f *fetcher) place(due []*subscription) {
	f.refresh(due)
	var failed []*subscription
	for _, s := range due {
		addr, err := f.cluster.leader(s.TopicPartition)
		if err == nil {
			s.oldLeader = false
			f.loop(laneOf(addr, s.TopicPartition)).add(s)
			continue
		}
		f.trouble.has(s, err, "partition", s.TopicPartition.String())
		if code, _ := refusal(err); code == sarama.ErrUnknownTopicOrPartition && f.unknown(s) {
			continue
		}
		s.failed()
		failed = append(failed, s)
	}
	if len(failed) > 0 {
		f.rehome(failed)
	}
}

// refresh asks for the leaders of those that could not be read where they were looked for.
func (f *fetcher) refresh(due []*subscription) {
	seen := map[string]bool{}
	var topics []string
	for _, s := range due {
		if s.oldLeader && !seen[s.Topic] {
			seen[s.Topic] = true
			topics = append(topics, s.Topic)
		}
	}
	if len(topics) == 0 {
		return
	}
	if err := f.cluster.control.RefreshMetadata(topics...); err != nil {
		f.cluster.cfg.Logger.Debug("metadata cannot be had", "topics", topics, "error", err)
	}
}

// unknown notes that a subscription's topic is unknown, and gives it up when it has been for too long.
func (f *fetcher) unknown(s *subscription) (givenUp bool) {
	if s.unknown.IsZero() {
		s.unknown = time.Now()
	}
	if time.Since(s.unknown) < f.cluster.cfg.UnknownTopicAfter {
		return false
	}
	s.port.failed(s, &UnknownTopicError{s.TopicPartition})
	return true
}

// loop returns the loop that reads a lane, starting it if need be.
func (f *fetcher) loop(from lane) *fetchLoop {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.loops[from]
	if l == nil {
		l = newFetchLoop(f, from.addr)
		f.loops[from] = l
		f.cluster.work.Go(l.run)
	}
	return l
}

// signal wakes whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
