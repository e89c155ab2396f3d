package store

import "fmt"

// Scan calls fn for the live keys of the range in its order until fn returns
// false or an error, which Scan returns. The pair's slices are valid until fn
// returns.
//
// A scan is live: it sees the store as it is when each key is reached. fn may
// put and delete keys of this store, read and scan it, or roll it back; a key
// deleted before the scan reaches it is not seen, a key put ahead of the scan
// is. A deleted key or a nil value is never seen. This holds for every backend.
// fn must not commit, abort, flush or restore the store. The range's bounds
// must not change while the scan runs.
//
// Backends are read in chunks that are copied: a slow fn blocks nobody.
func (l *Layered) Scan(r Range, fn func(Pair) (bool, error)) error {
	if l.ttl != nil {
		return l.ttl.scan(l, r, false, fn)
	}
	return l.scan(r, false, fn)
}

// ScanCommitted is Scan for readers that must not see what may yet be undone: it
// looks at the committed layers only.
func (l *Layered) ScanCommitted(r Range, fn func(Pair) (bool, error)) error {
	if l.ttl != nil {
		return l.ttl.scan(l, r, true, fn)
	}
	return l.scan(r, true, fn)
}

func (l *Layered) scan(r Range, committedOnly bool, fn func(Pair) (bool, error)) error {
	s := l.takeScan()
	defer l.putScan(s)
	s.begin(l, r, committedOnly)
	for {
		if l.closed {
			return fmt.Errorf("%w: %s", ErrClosed, l.name)
		}
		pair, ok, err := s.next()
		if err != nil || !ok {
			return l.failed(err)
		}
		if more, err := fn(pair); err != nil || !more {
			return err
		}
	}
}

// scan merges the layers' cursors, newest layer first, in the order of keys.
type scan struct {
	r       Range
	cursors [4]cursor
	n       int  // cursors in use
	live    bool // the first cursor is of the uncommitted layer
	beside  bool // it is a Reader's
	below   chunks

	last    []byte // the key reached
	started bool
	value   []byte
}

func (s *scan) begin(l *Layered, r Range, committedOnly bool) {
	s.r, s.n, s.live, s.started = r, 0, false, false
	if !committedOnly {
		s.live = true
		s.add(l.uncommitted)
		s.add(l.committing)
	}
	s.add(l.committed)
	s.add(l.flushing)
	s.below.begin(l.backend, r)
}

// add begins a cursor on a layer. Only the uncommitted one can grow while the
// scan runs, so others take part only if they hold anything.
func (s *scan) add(w *WriteSet) {
	if w == nil || (w.Len() == 0 && (!s.live || s.n > 0)) {
		return
	}
	c := &s.cursors[s.n]
	c.set, c.beside = w, s.beside
	c.start(s.r)
	s.n++
}

// next returns the next live pair.
func (s *scan) next() (pair Pair, ok bool, err error) {
	for more := true; more && !ok && err == nil; {
		pair, ok, more, err = s.step()
	}
	return pair, ok, err
}

// step goes to the next key, and returns its pair unless it is a tombstone's.
// There is no more once the range is at its end.
func (s *scan) step() (pair Pair, ok, more bool, err error) {
	if s.started {
		for i := range s.n {
			s.cursors[i].advance(s.r, s.last)
		}
		s.below.advance(s.last)
	}
	if err := s.below.fill(); err != nil {
		return Pair{}, false, false, err
	}
	layer, more := s.lowest()
	if !more {
		return Pair{}, false, false, nil
	}
	s.started = true
	pair, ok = s.reach(layer)
	return pair, ok, true, nil
}

// lowest finds the layer that holds the next key in the range's order: the
// newest if several do. The number after the last cursor's is the backend's.
func (s *scan) lowest() (layer int, ok bool) {
	var lowest string
	for i := range s.n {
		e := s.cursors[i].entry
		if e != nil && (!ok || s.r.compare(e.Key, lowest) < 0) {
			lowest, layer, ok = e.Key, i, true
		}
	}
	if p := s.below.pair(); p != nil && (!ok || s.r.compare(viewString(p.Key), lowest) < 0) {
		layer, ok = s.n, true
	}
	return layer, ok
}

// reach makes the layer's key the last one and returns its pair, or false if it
// is a tombstone.
func (s *scan) reach(layer int) (Pair, bool) {
	if layer == s.n {
		p := s.below.pair()
		s.last = refill(s.last, p.Key)
		return *p, true
	}
	e := s.cursors[layer].entry
	s.last = refill(s.last, e.Key)
	if e.Deleted {
		return Pair{}, false
	}
	value := e.Value
	if s.live && layer == 0 {
		// fn may overwrite the entry while it looks at the pair.
		s.value = append(s.value[:0], value...)
		value = s.value
	}
	if value == nil {
		value = emptyBytes
	}
	return Pair{Key: e.KeyBytes(), Value: value, Timestamp: e.Timestamp}, true
}

// chunks reads a backend's range piece by piece, small pieces first since many
// ranges are small.
type chunks struct {
	backend BackendReader
	r       Range // what has not been asked for yet
	limit   int
	more    bool
	pairs   []Pair
	at      int
	bound   []byte
}

const (
	firstChunk = 16
	maxChunk   = 256

	// What a store keeps of ended scans for the next ones: how many, and bytes
	// for each.
	maxIdleScans = 4
	maxIdleScan  = 256 << 10
)

func (c *chunks) begin(b BackendReader, r Range) {
	c.backend, c.r = b, r
	c.limit, c.more = firstChunk, true
	c.pairs, c.at = c.pairs[:0], 0
}

// pair is the current pair, nil at the end.
func (c *chunks) pair() *Pair {
	if c.at == len(c.pairs) {
		return nil
	}
	return &c.pairs[c.at]
}

// advance goes past the key last if it is the current one.
func (c *chunks) advance(last []byte) {
	if p := c.pair(); p != nil && string(p.Key) == string(last) {
		c.at++
	}
}

// fill reads the next chunk if the current one is used up.
func (c *chunks) fill() error {
	if c.at < len(c.pairs) || !c.more {
		return nil
	}
	c.cut()
	pairs, err := c.backend.Scan(c.pairs[:0], c.r, c.limit)
	if err != nil {
		return err
	}
	c.pairs, c.at = pairs, 0
	c.more = len(pairs) == c.limit
	c.limit = min(c.limit*4, maxChunk)
	return nil
}

// cut takes what was read off the range.
func (c *chunks) cut() {
	if len(c.pairs) == 0 {
		return
	}
	c.bound = refill(c.bound, c.pairs[len(c.pairs)-1].Key)
	c.bound = c.r.cut(c.bound)
}

// cut takes what was read up to the key last off the range, which keeps the
// slice; that is returned as it is now.
func (r *Range) cut(last []byte) []byte {
	if r.Reverse {
		r.To = last
		return last
	}
	last = append(last, 0) // the smallest key above
	r.From = last
	return last
}

// forget drops what the chunks point to, and buffers grown large.
func (c *chunks) forget() {
	c.r, c.backend = Range{}, nil
	size := 0
	for i := range c.pairs {
		size += cap(c.pairs[i].Key) + cap(c.pairs[i].Value)
	}
	if size > maxIdleScan {
		c.pairs = nil
	}
	c.pairs, c.at = c.pairs[:0], 0
}

// forget drops what the scan points to; its buffers stay.
func (s *scan) forget() {
	for i := range s.n {
		s.cursors[i].forget()
	}
	s.r = Range{}
	s.below.forget()
}

func (l *Layered) takeScan() *scan {
	n := len(l.scans)
	if n == 0 {
		return new(scan)
	}
	s := l.scans[n-1]
	l.scans = l.scans[:n-1]
	return s
}

// putScan keeps a scan's buffers but nothing that it pointed to.
func (l *Layered) putScan(s *scan) {
	s.forget()
	if len(l.scans) < maxIdleScans && cap(s.value) <= maxIdleScan {
		l.scans = append(l.scans, s)
	}
}
