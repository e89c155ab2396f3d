package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of kfake's files in the log.
const (
	partitionsName = "partitions"
	groupsLogName  = "groups.log"
	pidsLogName    = "pids.log"
)

// intent is where all files ended just before the broker committed a transaction. kfake commits with one write after
// the other: a marker into each partition, then the offsets, then an entry in pids.log. It serves nobody meanwhile. So if
// it is killed in between, whoever starts next can take back the part that was written, and nobody has seen it.
type intent struct {
	Seq        uint64          `json:"seq"`
	Producer   int64           `json:"producer"`
	Epoch      int16           `json:"epoch"`
	PIDs       int64           `json:"pids"`       // size of pids.log
	PIDsFile   uint64          `json:"pidsFile"`   // inode of pids.log, which changes when it is rewritten
	Groups     int64           `json:"groups"`     // size of groups.log
	Partitions map[string]tail `json:"partitions"` // by directory name; absent means empty
}

// tail is the end of a partition.
type tail struct {
	Base int64 `json:"base"` // of the last segment
	Size int64 `json:"size"` // of its file
}

// intents writes intents in turn to two files, so that the last but one is whole while one is written.
type intents struct {
	dir  string // of the log
	path func(slot uint64) string
	seq  uint64
}

func newIntents(d *directory) *intents {
	return &intents{dir: d.data(), path: d.intent}
}

// record writes the intent to commit the producer's transaction.
func (w *intents) record(producer int64, epoch int16) error {
	w.seq++
	in := intent{Seq: w.seq, Producer: producer, Epoch: epoch}
	var err error
	if in.PIDs, in.PIDsFile, err = sizeAndInode(filepath.Join(w.dir, pidsLogName)); err != nil {
		return err
	}
	if in.Groups, err = fileSize(filepath.Join(w.dir, groupsLogName)); err != nil {
		return err
	}
	if in.Partitions, err = tails(filepath.Join(w.dir, partitionsName)); err != nil {
		return err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%08x\n", crc32.Checksum(text, castagnoli))
	return os.WriteFile(w.path(w.seq%2), append([]byte(sum), text...), 0o644)
}

func tails(dir string) (map[string]tail, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]tail, len(entries))
	for _, e := range entries {
		bases, err := segmentBases(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if len(bases) == 0 {
			continue
		}
		t := tail{Base: bases[len(bases)-1]}
		if t.Size, err = fileSize(filepath.Join(dir, e.Name(), datName(t.Base))); err != nil {
			return nil, err
		}
		all[e.Name()] = t
	}
	return all, nil
}

// lastIntent returns the newest whole intent, or nil. An intent that is not whole was being written: its commit had not
// begun.
func lastIntent(d *directory) (*intent, error) {
	var last *intent
	for slot := range uint64(2) {
		raw, err := os.ReadFile(d.intent(slot))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(raw) < 9 || fmt.Sprintf("%08x\n", crc32.Checksum(raw[9:], castagnoli)) != string(raw[:9]) {
			continue
		}
		var in intent
		if err := json.Unmarshal(raw[9:], &in); err != nil {
			return nil, err
		}
		if last == nil || in.Seq > last.Seq {
			last = &in
		}
	}
	return last, nil
}

func removeIntents(d *directory) error {
	var errs []error
	for slot := range uint64(2) {
		if err := os.Remove(d.intent(slot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
