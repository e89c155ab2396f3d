package processor

import (
	"strings"
)

// Mark is a number that is committed in the metadata of all positions of a task, beside what its nodes keep. It says what
// the positions stand on, and is whoever's who makes the leases: a task only carries it. The name begins with MarkPrefix.
type Mark struct {
	Name  string
	Value int64
}

// MarkPrefix is what the names of marks begin with. No node keeps a number under such a name.
const MarkPrefix = "@/"

// Marks returns the marks of the newest commit among the metadata of a task's positions, by name; there are none in what
// Kafka Streams has written.
func Marks(metadata []string) map[string]int64 {
	marks, _ := newestKept(metadata)
	for name := range marks {
		if !strings.HasPrefix(name, MarkPrefix) {
			delete(marks, name)
		}
	}
	return marks
}

// Remark returns the metadata with other marks in the place of those that it has. The rest stays; empty metadata is that
// of a partition of which no record was seen.
func Remark(metadata string, marks []Mark) string {
	var kept []*Kept
	entries := decodeKept(metadata)
	for _, e := range entries {
		if e.name != commitCount && !strings.HasPrefix(e.name, MarkPrefix) {
			kept = append(kept, &Kept{name: e.name, value: e.value})
		}
	}
	return encodeMetadata(DecodePartitionTime(metadata), countOf(entries), kept, marks)
}
