package kafka

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// fetchLoop reads one lane of a broker, one request after the other: all of its partitions whose readers keep up.
type fetchLoop struct {
	fetcher *fetcher
	addr    string
	lines   *lines
	wake    chan struct{}

	mu    sync.Mutex
	added []*subscription

	subs []*subscription // the goroutine's own
}

func newFetchLoop(f *fetcher, addr string) *fetchLoop {
	return &fetchLoop{fetcher: f, addr: addr, lines: newLines(f.cluster.conf), wake: make(chan struct{}, 1)}
}

func (l *fetchLoop) add(s *subscription) {
	s.loop.Store(l)
	l.mu.Lock()
	l.added = append(l.added, s)
	l.mu.Unlock()
	signal(l.wake)
}

func (l *fetchLoop) run() {
	defer l.lines.close()
	done := l.fetcher.cluster.ctx.Done()
	for {
		l.adopt()
		req, asked := l.request()
		if len(asked) == 0 {
			select {
			case <-l.wake:
				continue
			case <-done:
				return
			}
		}
		if l.fetcher.cluster.ctx.Err() != nil {
			return
		}
		l.fetch(req, asked)
	}
}

// adopt takes up new subscriptions and forgets those that are gone.
func (l *fetchLoop) adopt() {
	l.mu.Lock()
	l.subs = append(l.subs, l.added...)
	clear(l.added)
	l.added = l.added[:0]
	l.mu.Unlock()
	l.subs = slices.DeleteFunc(l.subs, func(s *subscription) bool {
		if s.gone.Load() && s.failures > 0 {
			l.fetcher.trouble.forget(s)
		}
		return s.gone.Load()
	})
}

// request asks for every partition whose reader keeps up. sarama writes them in a random order, so that the response's
// limit does not always hit the same ones. Two readers of one partition take turns.
func (l *fetchLoop) request() (*sarama.FetchRequest, []*subscription) {
	req := &sarama.FetchRequest{
		Version: 11, MaxWaitTime: int32(fetchWait.Milliseconds()), MinBytes: 1, MaxBytes: responseBytes,
		Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	if n := len(l.subs); n > 1 {
		l.subs = append(l.subs[1:n:n], l.subs[0])
	}
	var asked []*subscription
	seen := make(map[processor.TopicPartition]bool, len(l.subs))
	for _, s := range l.subs {
		if s.full() || seen[s.TopicPartition] {
			req.MaxWaitTime = int32(heldBackWait.Milliseconds())
			continue
		}
		seen[s.TopicPartition] = true
		req.AddBlock(s.Topic, s.Partition, s.position, s.maxBytes, -1)
		asked = append(asked, s)
	}
	return req, asked
}

func (l *fetchLoop) fetch(req *sarama.FetchRequest, asked []*subscription) {
	b, err := l.lines.to(l.addr)
	if err != nil {
		l.lose(l.subs, err)
		return
	}
	resp, err := b.Fetch(req)
	if err == nil && resp.ErrorCode != 0 {
		err = sarama.KError(resp.ErrorCode)
	}
	if err != nil {
		l.lines.drop(b)
		l.lose(l.subs, err)
		return
	}
	var astray []*subscription
	for _, s := range asked {
		if block := resp.GetBlock(s.Topic, s.Partition); block != nil && !s.gone.Load() {
			if !l.take(b, s, block) {
				astray = append(astray, s)
			}
		}
	}
	l.lose(astray, nil)
}

// lose hands subscriptions back to the router.
func (l *fetchLoop) lose(subs []*subscription, err error) {
	if len(subs) == 0 {
		return
	}
	if err != nil && l.fetcher.cluster.ctx.Err() == nil {
		for _, s := range subs {
			l.fetcher.trouble.has(s, err, "broker", l.addr)
		}
	}
	lost := slices.Clone(subs)
	l.subs = slices.DeleteFunc(l.subs, func(s *subscription) bool { return slices.Contains(lost, s) })
	for _, s := range lost {
		s.loop.Store(nil)
		s.failed()
	}
	l.fetcher.rehome(lost)
}

// take delivers what a response holds of one partition. It reports whether the partition is to be read on from here.
func (l *fetchLoop) take(b *sarama.Broker, s *subscription, block *sarama.FetchResponseBlock) bool {
	if block.Err != sarama.ErrNoError {
		return l.refused(b, s, block.Err)
	}
	if s.failures > 0 {
		l.fetcher.trouble.left(s)
	}
	s.failures, s.unknown = 0, time.Time{}
	r, err := decode(block, s.position, &l.fetcher.spares)
	if err != nil {
		s.port.failed(s, &PartitionError{TopicPartition: s.TopicPartition, Err: err})
		return true
	}
	if r.partial && r.next == s.position {
		s.maxBytes = int32(min(2*int64(s.maxBytes), 1<<30))
		return true
	}
	if r.next > s.position {
		s.position = r.next
		s.held.Add(int64(r.bytes))
		s.port.deliver(s, runtime.Fetched{
			TopicPartition: s.TopicPartition, Records: r.records, Next: r.next, Bytes: r.bytes, More: r.next < block.LastStableOffset,
		})
	}
	return true
}

// refused reads a refusal: what a retry cannot help ends the reading.
func (l *fetchLoop) refused(b *sarama.Broker, s *subscription, code sarama.KError) (stays bool) {
	switch code {
	case sarama.ErrOffsetOutOfRange:
		held, err := l.bounds(b, s.TopicPartition)
		if err != nil || s.position >= held.Start && s.position <= held.End {
			return false // a leader that was behind, or is none any more
		}
		s.port.failed(s, &OffsetOutOfRangeError{TopicPartition: s.TopicPartition, Offset: s.position, Start: held.Start, End: held.End})
		return true
	case sarama.ErrUnknownTopicOrPartition:
		return l.fetcher.unknown(s)
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrUnsupportedVersion, sarama.ErrInvalidTopic, sarama.ErrUnsupportedCompressionType:
		s.port.failed(s, &PartitionError{TopicPartition: s.TopicPartition, Err: code})
		return true
	}
	l.fetcher.cluster.cfg.Logger.Debug("partition cannot be read here", "partition", s.TopicPartition.String(), "broker", l.addr, "error", code)
	return false
}

func (l *fetchLoop) bounds(b *sarama.Broker, tp processor.TopicPartition) (Range, error) {
	tps := []processor.TopicPartition{tp}
	version := l.fetcher.cluster.conf.Version
	oldest, err := b.GetAvailableOffsets(listOffsets(version, tps, sarama.OffsetOldest))
	if err != nil {
		return Range{}, err
	}
	newest, err := b.GetAvailableOffsets(listOffsets(version, tps, sarama.OffsetNewest))
	if err != nil {
		return Range{}, err
	}
	start, err := listed(oldest, tp)
	end, err2 := listed(newest, tp)
	return Range{start, end}, errors.Join(err, err2)
}
