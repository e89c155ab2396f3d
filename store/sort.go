package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/millrace-streams/millrace/internal/keyorder"
)

// Sort brings the entries into ascending order of their keys; it is cheap if
// they are.
func (b *Batch) Sort() { sortEntries(b.Entries) }

func compareKeys(a, b *Entry) int { return strings.Compare(a.Key, b.Key) }

// numbered is an entry with what is looked at first when it is sorted: most
// comparisons need not go to the entry.
type numbered struct {
	number uint64
	entry  *Entry
}

func sortEntries(entries []*Entry) {
	if slices.IsSortedFunc(entries, compareKeys) {
		return
	}
	first := entries[0].KeyBytes()
	for _, e := range entries {
		first = first[:keyorder.Common(first, e.KeyBytes())]
	}
	skip := len(first)
	list := make([]numbered, len(entries))
	for i, e := range entries {
		list[i] = numbered{keyorder.Number(e.KeyBytes(), skip), e}
	}
	slices.SortFunc(list, func(a, b numbered) int {
		if a.number != b.number {
			return cmp.Compare(a.number, b.number)
		}
		return keyorder.Compare(a.entry.KeyBytes(), b.entry.KeyBytes(), skip)
	})
	for i := range list {
		entries[i] = list[i].entry
	}
}
