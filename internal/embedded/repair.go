package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// repair makes a log right that its broker did not close, given that every write of the broker before its end is there,
// in order: it was killed, or its process ended, and the machine went on. It takes back a commit that was half
// written, gives every open transaction its abort marker, and fences the producers. It may itself be killed at any point
// and be run again. It returns the number of transactions that it ended.
func repair(d *directory) (aborted int, err error) {
	if err := checkFormat(d); err != nil {
		return 0, err
	}
	// What a clean end leaves for the next start is older than the log.
	for _, name := range []string{"session_state.json", "seq_windows.json"} {
		if err := os.Remove(filepath.Join(d.data(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	if _, err := readStateLog(filepath.Join(d.data(), groupsLogName)); err != nil {
		return 0, err
	}
	entries, err := readStateLog(filepath.Join(d.data(), pidsLogName))
	if err != nil {
		return 0, err
	}
	epochs, err := transactionalProducers(entries)
	if err != nil {
		return 0, err
	}
	if err := rollBack(d); err != nil {
		return 0, err
	}
	if aborted, err = abortOpen(d); err != nil {
		return 0, err
	}
	return aborted, fence(filepath.Join(d.data(), pidsLogName), epochs)
}

// checkFormat refuses files of another format than the one that repair knows.
func checkFormat(d *directory) error {
	text, err := os.ReadFile(filepath.Join(d.data(), "meta.json"))
	if err != nil {
		return err
	}
	var meta struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		return err
	}
	if meta.Version != stateVersion {
		return fmt.Errorf("format %d is unknown", meta.Version)
	}
	return nil
}

// partitions reads every partition of the log and makes its files whole.
func partitions(d *directory) (map[string]*partition, error) {
	root := filepath.Join(d.data(), partitionsName)
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]*partition, len(entries))
	for _, e := range entries {
		p, err := readPartition(filepath.Join(root, e.Name()))
		if err != nil {
			return nil, err
		}
		all[e.Name()] = p
	}
	return all, nil
}

// rollBack takes back the commit that the broker was writing when it ended, if it was.
func rollBack(d *directory) error {
	in, err := lastIntent(d)
	if err != nil || in == nil {
		return err
	}
	size, inode, err := sizeAndInode(filepath.Join(d.data(), pidsLogName))
	if err != nil {
		return err
	}
	if size <= in.PIDs && inode == in.PIDsFile { // else the commit came to its end
		if err := in.undo(d); err != nil {
			return err
		}
	}
	return removeIntents(d)
}

// undo takes back the markers and offsets behind the intent, if these are all that is behind it. If there is anything
// else, the broker went on after it had refused this commit.
func (in *intent) undo(d *directory) error {
	all, err := partitions(d)
	if err != nil {
		return err
	}
	var marked []*partition
	for name, p := range all {
		behind := p.behind(in.Partitions[name])
		if len(behind) == 0 {
			continue
		}
		if len(behind) > 1 || behind[0].marker != commitMarker || behind[0].producer != in.Producer || behind[0].producerEpoch != in.Epoch {
			return nil
		}
		marked = append(marked, p)
	}
	if len(marked) == 0 {
		return nil
	}
	// The markers go last: they tell a second run that the first was killed.
	if err := truncate(filepath.Join(d.data(), groupsLogName), in.Groups); err != nil {
		return err
	}
	for _, p := range marked {
		if err := p.dropLast(); err != nil {
			return err
		}
	}
	return nil
}

// behind returns the batches after the tail.
func (p *partition) behind(t tail) []batch {
	for i, b := range p.batches {
		if b.segment > t.Base || b.segment == t.Base && b.pos >= t.Size {
			return p.batches[i:]
		}
	}
	return nil
}

// dropLast removes the last batch. Its index entry goes first, because a batch without one is dropped by readPartition.
func (p *partition) dropLast() error {
	last := p.batches[len(p.batches)-1]
	p.batches = p.batches[:len(p.batches)-1]
	var entries int64
	for _, b := range p.batches {
		if b.segment == last.segment {
			entries++
		}
	}
	if err := truncate(filepath.Join(p.dir, idxName(last.segment)), entries*indexEntrySize); err != nil {
		return err
	}
	return truncate(filepath.Join(p.dir, datName(last.segment)), last.pos)
}

// abortOpen writes the abort marker of every transaction that is open in a partition, and returns how many producers
// had one.
func abortOpen(d *directory) (int, error) {
	all, err := partitions(d)
	if err != nil {
		return 0, err
	}
	producers := map[int64]bool{}
	for _, p := range all {
		for _, b := range p.openTransactions() {
			producers[b.producer] = true
			if err := p.appendAbort(b.producer, b.producerEpoch); err != nil {
				return 0, err
			}
		}
	}
	return len(producers), nil
}
