package kafka

import (
	"fmt"
	"strings"

	"github.com/millrace-streams/millrace/processor"
)

// LostInputError is a committed position that the input's log does not hold: records were deleted before they were
// processed, or the topic was created anew.
type LostInputError struct {
	Group string
	processor.TopicPartition
	Committed  int64
	Start, End int64 // what the log holds; End is exclusive
	Recreated  bool  // the topic was deleted and created again
}

// Lost returns how many records were deleted before they were processed, at most; -1 if that cannot be known.
func (e *LostInputError) Lost() int64 {
	if e.Recreated || e.Committed > e.End {
		return -1
	}
	return e.Start - e.Committed
}

// Error names group, partition, the committed position and what the log holds, and says what to do.
func (e *LostInputError) Error() string {
	what := fmt.Sprintf("%d records were deleted before they were processed", e.Lost())
	switch {
	case e.Recreated:
		what = "the topic was deleted and created again"
	case e.Committed > e.End:
		what = "the log has lost its end"
	}
	return fmt.Sprintf("kafka: input %s: %s: group %q has committed offset %d, the log holds %d up to %d; to go on without what is lost, set the group's offset or Config.LostInput",
		e.TopicPartition, what, e.Group, e.Committed, e.Start, e.End)
}

// LostOffsetsError is a task with state for whose inputs the group has no committed positions (any more): they have
// expired, or were deleted, or an input was created anew. To begin anew would be to count twice.
type LostOffsetsError struct {
	Group      string
	Task       processor.TaskID
	Partitions []processor.TopicPartition // inputs without a position
	State      []processor.TopicPartition // changelogs that hold something
}

// Error names group, task and partitions, and says what to do.
func (e *LostOffsetsError) Error() string {
	return fmt.Sprintf("kafka: task %s: group %q has no committed offset for %s, but there is state in %s: the offsets have expired or were deleted; "+
		"set them to where the state stands, or reset the application (see millrace.Reset) to process its input from the start with empty stores",
		e.Task, e.Group, list(e.Partitions), list(e.State))
}

func list(tps []processor.TopicPartition) string {
	var names []string
	for _, tp := range tps {
		names = append(names, tp.String())
	}
	return strings.Join(names, ", ")
}
