package runtime

import (
	"fmt"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// LostStateError is a changelog that does not hold what its store held: it was deleted and created again, or has lost its
// end.
type LostStateError struct {
	Task       processor.TaskID
	Store      string
	Changelog  processor.TopicPartition
	Start, End int64 // what the log holds; End is exclusive
	// Held is the offset that the local store has reached when the log has lost its end, -1 when it was created again.
	Held      int64
	Committed []processor.Position // of the task's inputs, which count on the state
}

// Error names task, store, changelog and offsets, and says what to do.
func (e *LostStateError) Error() string {
	var at []string
	for _, p := range e.Committed {
		at = append(at, fmt.Sprintf("%s up to %d", p.TopicPartition, p.Offset))
	}
	what := "was deleted and created again"
	if e.Held >= 0 {
		what = fmt.Sprintf("has lost its end: the local store holds it up to %d", e.Held)
	}
	return fmt.Sprintf("changelog %[3]s of store %[2]q, task %[1]s, %[4]s, it holds offsets %[5]d up to %[6]d, while the group has processed %[7]s; restore the topic, "+
		"or reset the application (see millrace.Reset), or set Config.LostState to go on with what the changelog holds",
		e.Task, e.Store, e.Changelog, what, e.Start, e.End, strings.Join(at, ", "))
}
