package processor

// Late is a record that came when a window of its was closed already, or its store had moved on
// without it.
type Late struct {
	Task      TaskID
	Node      string
	Topic     string // empty in punctuations and when it comes from a table that held it back
	Partition int32  // -1 without a topic
	Offset    int64  // -1 without a topic
	Timestamp int64  // of the record
	// Start and End are the bounds of the window, of a session those that it would have had. A record of a join has none: it
	// is late for the store of its side, both bounds are its timestamp, and it is still joined with what there is. Nor has a record
	// of a versioned table from before the history, which changes nothing.
	Start, End int64
	// StreamTime is the highest timestamp that the node has seen; of a versioned table, that its store has taken up.
	StreamTime int64
}

// Late counts a late record, once for each closed window, and tells Options.Late of it. The caller fills in Node, Timestamp,
// Start, End and StreamTime. It is told of again if the step fails and the record is processed again.
func (t *Task) Late(l Late) {
	t.Counters.Late++
	if t.opt.Late == nil {
		return
	}
	from := t.Origin()
	l.Task, l.Topic, l.Partition, l.Offset = t.ID, from.Topic, from.Partition, from.Offset
	t.opt.Late(l)
}
