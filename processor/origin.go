package processor

// Origin is where a record was fetched.
type Origin struct {
	Topic     string // empty if it was not: in punctuations, and for what tables have held back
	Partition int32  // -1 without a topic
	Offset    int64  // -1 without a topic
}

// Origin returns where the record in work comes from.
func (t *Task) Origin() Origin {
	switch {
	case t.origin != nil:
		return *t.origin
	case t.record == nil:
		return Origin{Partition: -1, Offset: -1}
	}
	return Origin{t.inputOf.tp.Topic, t.inputOf.tp.Partition, t.record.Offset}
}

// From calls fn as if a record of another origin and time were in work, as when a node sends on what it had kept. Failures
// are still those of the record that is in fact in work.
func (t *Task) From(origin Origin, time int64, fn func() error) error {
	before := t.origin
	t.origin = &origin
	defer func() { t.origin = before }()
	return t.At(time, fn)
}
