package processor

// Whereabouts is the record that a task is working on, and the node that it has reached.
type Whereabouts struct {
	Task           TaskID
	Node           string
	TopicPartition       // no topic: a punctuation, or what a table had held back
	Offset         int64 // -1 likewise
}

// Whereabouts tells where a task is whose step does not end, to a goroutine other than the one that runs it. For one that
// gets on it is of no use: it may name half of one record and half of another.
//
// It reads without synchronisation what the task writes for every record and every node, since to make those writes atomic
// would cost more than the rest of the bookkeeping. All of it are words, which Go reads whole, and the step that does not end
// wrote them long ago.
//
//go:norace
func (t *Task) Whereabouts() Whereabouts {
	at := Whereabouts{Task: t.ID, Offset: -1}
	if i := t.node; i >= 0 && int(i) < len(t.spec.Nodes) {
		at.Node = t.spec.Nodes[i].Name
	}
	if in, record := t.inputOf, t.record; in != nil && record != nil {
		at.TopicPartition, at.Offset = in.tp, record.Offset
	}
	return at
}
