package processor

// input is the queue of one source partition: fetched batches, and how far they are processed.
type input struct {
	tp        TopicPartition
	node      string
	source    Source
	batches   []fetched
	head      int   // next record of batches[0]
	buffered  int   // records not yet processed
	next      int64 // position behind all that was enqueued, past control records
	prepared  int64 // position in the newest Commit, or where the task started
	processed bool  // a record was processed since prepared
}

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
func (t *Task) Enqueue(tp TopicPartition, records []Raw, next int64, bytes int) {
	in := t.byPartition[tp]
	in.next = next
	if len(records) == 0 {
		t.opt.Consumed(tp, bytes)
		return
	}
	in.batches = append(in.batches, fetched{records, bytes})
	in.buffered += len(records)
}

// Buffered returns the number of records that wait to be processed.
func (t *Task) Buffered() int {
	n := 0
	for _, in := range t.inputs {
		n += in.buffered
	}
	return n
}

// choose returns the input whose next record is the oldest, the first declared among equals, or nil when all are empty.
func (t *Task) choose() *input {
	var best *input
	for _, in := range t.inputs {
		if in.buffered > 0 && (best == nil || in.peek().Timestamp < best.peek().Timestamp) {
			best = in
		}
	}
	return best
}
