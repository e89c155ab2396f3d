package processor

import "math"

// input is the queue of one source partition: fetched batches, and how far they are processed.
type input struct {
	tp        TopicPartition
	node      string
	index     int32 // of the node
	source    Source
	batches   []fetched
	head      int   // next record of batches[0]
	buffered  int   // records not yet processed
	next      int64 // position behind all that was enqueued, past control records
	prepared  int64 // position in the newest Commit, or where the task started
	processed bool  // a record was processed since prepared
	time      int64 // highest timestamp processed, Unknown before the first record

	clock
	extracted int64 // highest timestamp enqueued
	behind    bool  // the broker has more than was enqueued
	idleFrom  int64 // wall clock when it was first missed, 0 while it is not
}

// clock is what a source knows of the times of its records.
type clock struct {
	extract  func(raw *Raw, partitionTime int64) int64 // nil: a record's own timestamp
	maxAhead int64                                     // how far beyond the wall clock a timestamp may lie, in ms; 0: as far as it likes
}

// ahead reports whether a record's timestamp lies too far ahead of the wall clock.
func (c *clock) ahead(r *Raw, now int64) bool { return c.maxAhead > 0 && r.Timestamp > now+c.maxAhead }

type fetched struct {
	records []Raw
	bytes   int
}

func (in *input) peek() *Raw { return &in.batches[0].records[in.head] }

// position is the offset to commit: the next unprocessed record, or the end of what was fetched.
func (in *input) position() int64 {
	if in.buffered > 0 {
		return in.peek().Offset
	}
	return in.next
}

// advance leaves the head record and returns the batch that is now used up, if one is.
func (in *input) advance() (usedUp fetched) {
	in.head++
	in.buffered--
	in.processed = true
	if in.head < len(in.batches[0].records) {
		return fetched{}
	}
	usedUp = in.batches[0]
	in.batches[0] = fetched{}
	in.batches, in.head = in.batches[1:], 0
	return usedUp
}

// leave takes an input past its head record.
func (t *Task) leave(in *input) {
	used := in.advance()
	if used.records == nil {
		return
	}
	t.record, t.inputOf = nil, nil
	if used.bytes > 0 {
		t.opt.Consumed(in.tp, used.bytes)
	}
	if t.opt.Recycle != nil {
		t.opt.Recycle(used.records)
	}
}

// Enqueue hands the task records of one of its input partitions, ascending by offset and following on what it was given
// before. next is the position behind them, which may lie past control records; records may be empty. The task keeps
// the slice until the last of the records is processed; then it reports bytes to Options.Consumed and gives the slice to
// Options.Recycle.
//
// behind says that the broker holds more behind next; the other inputs of the task then wait for it.
func (t *Task) Enqueue(tp TopicPartition, records []Raw, next int64, bytes int, behind bool) {
	in := t.byPartition[tp]
	in.next = next
	in.behind = behind
	if len(records) == 0 {
		t.opt.Consumed(tp, bytes)
		return
	}
	in.stamp(records, t.now)
	in.batches = append(in.batches, fetched{records, bytes})
	in.buffered += len(records)
	in.idleFrom = 0
}

// stamp gives the records the timestamps that the source's extractor finds in them.
func (in *input) stamp(records []Raw, now int64) {
	if in.extract == nil {
		return
	}
	for i := range records {
		r := &records[i]
		r.Timestamp = in.extract(r, in.extracted)
		if !in.ahead(r, now) {
			in.extracted = max(in.extracted, r.Timestamp)
		}
	}
}

// Buffered returns the number of records that wait to be processed.
func (t *Task) Buffered() int {
	n := 0
	for _, in := range t.inputs {
		n += in.buffered
	}
	return n
}

// More reports whether input is at hand or known to be on the broker.
func (t *Task) More() bool {
	for _, in := range t.inputs {
		if in.buffered > 0 || in.behind {
			return true
		}
	}
	return false
}

// choose returns the input whose next record is the oldest, the first declared among equals. It returns nil when all are
// empty, or when one is missed: see Options.MaxIdle.
func (t *Task) choose() *input {
	var best *input
	missing := false
	for _, in := range t.inputs {
		switch {
		case in.buffered == 0:
			missing = true
		case in.ahead(in.peek(), t.now):
			return in // to be dropped; what follows need not wait
		case best == nil || in.peek().Timestamp < best.peek().Timestamp:
			best = in
		}
	}
	t.stalled = 0
	if missing && best != nil && t.opt.MaxIdle >= 0 {
		if t.stalled = t.missed(); t.stalled > 0 {
			return nil
		}
	}
	return best
}

// missed returns until when to wait for an empty input, 0 if not at all.
func (t *Task) missed() (until int64) {
	for _, in := range t.inputs {
		if in.buffered > 0 {
			continue
		}
		if in.behind {
			return math.MaxInt64 // its records are on their way
		}
		if t.opt.MaxIdle == 0 {
			continue
		}
		if in.idleFrom == 0 {
			in.idleFrom = t.now
		}
		if at := in.idleFrom + t.opt.MaxIdle.Milliseconds(); at > t.now {
			until = max(until, at)
		}
	}
	return until
}

// Stalled reports whether records wait for an empty input, and until when at the most (milliseconds since 1970). It is as
// of the latest Run.
func (t *Task) Stalled() (until int64, ok bool) { return t.stalled, t.stalled > 0 }
