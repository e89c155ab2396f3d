package bolt

import "github.com/millrace-streams/millrace/store"

// ApplyParts applies a batch up to the given number of transactions, as a process
// does that dies then, and reports whether the batch is done.
func ApplyParts(b store.Backend, batch store.Batch, parts int) (done bool, err error) {
	on := b.(*Backend)
	batch.Sort()
	p := pendingBatch(batch.Entries, batch.Offset)
	for range parts {
		if err := on.writePart(p); err != nil {
			return false, err
		}
		if len(p.entries) == 0 {
			return true, nil
		}
	}
	return false, nil
}
