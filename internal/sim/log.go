package sim

import (
	"fmt"
	"slices"
	"sort"

	"github.com/millrace-streams/millrace/processor"
)

// State is what a reader may make of an entry of a log.
type State uint8

// The states.
const (
	Committed State = iota
	Open            // its transaction is undecided
	Aborted
	Marker // a control record; it occupies an offset and nobody sees it
)

// Entry is one record of a log with its fate.
type Entry struct {
	processor.Raw
	State    State
	Order    int64 // place among all entries of the cluster, in the order of writing
	producer int64
}

// log is one partition.
type log struct {
	entries   []Entry // ascending by offset, with holes where it was compacted
	start     int64   // the first offset that can be read
	end       int64   // high watermark
	open      map[int64]int64
	sequences map[int64]sequence
	written   *int64 // entries of the whole cluster
}

// sequence is what a partition remembers of a producer: enough to know its last batch when it comes again.
type sequence struct {
	epoch int16
	first int32
	next  int32
	base  int64
}

func newLog(written *int64) *log {
	return &log{open: map[int64]int64{}, sequences: map[int64]sequence{}, written: written}
}

func (l *log) add(e Entry) int64 {
	*l.written++
	e.Offset, e.Order = l.end, *l.written
	l.entries = append(l.entries, e)
	l.end++
	return e.Offset
}

// write appends records that are visible at once.
func (l *log) write(records []processor.Raw) int64 {
	base := l.end
	for _, r := range records {
		l.add(Entry{Raw: r, State: Committed})
	}
	return base
}

// produce appends a batch of a transaction, unless it is the producer's last one, sent again.
func (l *log) produce(p Producer, first int32, records []processor.Raw) (int64, error) {
	s, known := l.sequences[p.ID]
	if !known || s.epoch != p.Epoch {
		s = sequence{epoch: p.Epoch}
	}
	next := first + int32(len(records))
	switch {
	case known && s.epoch == p.Epoch && first == s.first && next == s.next:
		return s.base, nil
	case first != s.next:
		return 0, fmt.Errorf("%w: got %d, want %d", ErrOutOfOrderSequence, first, s.next)
	}
	base := l.end
	for _, r := range records {
		l.add(Entry{Raw: r, State: Open, producer: p.ID})
	}
	if _, isOpen := l.open[p.ID]; !isOpen {
		l.open[p.ID] = base
	}
	l.sequences[p.ID] = sequence{epoch: p.Epoch, first: first, next: next, base: base}
	return base, nil
}

// mark writes the marker of a producer's transaction. One that wrote nothing here leaves a marker all the same.
func (l *log) mark(producer int64, committed bool) {
	if first, isOpen := l.open[producer]; isOpen {
		for i := l.index(first); i < len(l.entries); i++ {
			if e := &l.entries[i]; e.producer == producer && e.State == Open {
				e.State = Committed
				if !committed {
					e.State = Aborted
				}
			}
		}
		delete(l.open, producer)
	}
	l.add(Entry{State: Marker})
}

// stable is the last stable offset: where the first undecided transaction begins, else the end.
func (l *log) stable() int64 {
	at := l.end
	for _, first := range l.open {
		at = min(at, first)
	}
	return at
}

// index returns the place of the first entry at or behind offset.
func (l *log) index(offset int64) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].Offset >= offset })
}

// read returns up to limit committed records from offset on and the position behind what it passed.
func (l *log) read(offset int64, limit int) ([]processor.Raw, int64, error) {
	if offset < l.start || offset > l.end {
		return nil, offset, fmt.Errorf("%w: %d is not within %d and %d", ErrOffsetOutOfRange, offset, l.start, l.end)
	}
	var records []processor.Raw
	stable := l.stable()
	for i := l.index(offset); i < len(l.entries); i++ {
		e := &l.entries[i]
		if e.Offset >= stable || len(records) == limit {
			return records, max(offset, min(e.Offset, stable)), nil
		}
		if e.State == Committed {
			records = append(records, e.Raw)
		}
		offset = e.Offset + 1
	}
	return records, max(offset, stable), nil
}

// deleteBefore makes offset the start of the log.
func (l *log) deleteBefore(offset int64) {
	l.start = min(max(l.start, offset), l.end)
	l.entries = slices.Clone(l.entries[l.index(l.start):])
}

// compact drops what a cleaner may drop below the last stable offset: committed records whose key is written again,
// records of aborted transactions, markers. The last entry stays, as a real log's active segment does.
func (l *log) compact() {
	stable := l.stable()
	latest := map[string]int64{}
	for _, e := range l.entries {
		if e.State == Committed && e.Offset < stable {
			latest[string(e.Key)] = e.Offset
		}
	}
	last := len(l.entries) - 1
	kept := make([]Entry, 0, len(l.entries))
	for i, e := range l.entries {
		superseded := e.State != Committed || e.Key != nil && latest[string(e.Key)] != e.Offset
		if i == last || e.Offset >= stable || !superseded {
			kept = append(kept, e)
		}
	}
	l.entries = kept
}
