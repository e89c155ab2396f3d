package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// kfake keeps a partition as segments: BASE.dat holds record batches as on the wire, one after the other, and BASE.idx an
// entry of fixed size for each. A produce writes the batch and then its entry.

const (
	indexEntrySize = 15
	indexVersion   = 1
	batchHeader    = 61 // up to the records
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is what repair wants to know of a record batch.
type batch struct {
	segment       int64 // base of its segment
	pos, size     int64 // where it is in the segment's file
	next          int64 // the offset after it
	leaderEpoch   int32
	producer      int64
	producerEpoch int16
	transactional bool
	marker        marker
}

// marker says which end of a transaction a batch is.
type marker int

const (
	noMarker marker = iota
	abortMarker
	commitMarker
)

// partition is a partition's directory.
type partition struct {
	dir     string
	bases   []int64 // of its segments, ascending
	batches []batch
}

func datName(base int64) string { return strconv.FormatInt(base, 10) + ".dat" }
func idxName(base int64) string { return strconv.FormatInt(base, 10) + ".idx" }

// readPartition reads a partition and makes its last segment whole: a batch without its index entry, an entry without
// its batch or half of either was being written at the end, was never acknowledged, and goes.
func readPartition(dir string) (*partition, error) {
	bases, err := segmentBases(dir)
	if err != nil {
		return nil, err
	}
	p := &partition{dir: dir, bases: bases}
	for i, base := range bases {
		batches, total, err := p.readSegment(base)
		if err != nil {
			return nil, err
		}
		index, err := fileSize(filepath.Join(dir, idxName(base)))
		if err != nil {
			return nil, err
		}
		whole := min(int64(len(batches)), index/indexEntrySize)
		if i < len(bases)-1 && (whole < int64(len(batches)) || whole*indexEntrySize < index || total > end(batches)) {
			return nil, fmt.Errorf("%s: damaged before its end", filepath.Join(dir, datName(base)))
		}
		p.batches = append(p.batches, batches[:whole]...)
		if err := p.cut(base, end(batches[:whole]), whole); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func segmentBases(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".dat")
		if !ok {
			continue
		}
		base, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			return nil, err
		}
		bases = append(bases, base)
	}
	slices.Sort(bases)
	return bases, nil
}

// fileSize is zero for a file that is not there.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// end is the size of a file that ends with the last of the batches.
func end(batches []batch) int64 {
	if len(batches) == 0 {
		return 0
	}
	last := batches[len(batches)-1]
	return last.pos + last.size
}

// cut shortens the segment's files to so many bytes and index entries, where they are longer.
func (p *partition) cut(base, bytes, entries int64) error {
	return errors.Join(
		truncate(filepath.Join(p.dir, datName(base)), bytes),
		truncate(filepath.Join(p.dir, idxName(base)), entries*indexEntrySize))
}

func truncate(path string, size int64) error {
	now, err := fileSize(path)
	if err != nil || now <= size {
		return err
	}
	return os.Truncate(path, size)
}

// readSegment returns the whole batches at the start of the segment, and the file's size.
func (p *partition) readSegment(base int64) ([]batch, int64, error) {
	raw, err := os.ReadFile(filepath.Join(p.dir, datName(base)))
	if err != nil {
		return nil, 0, err
	}
	var batches []batch
	for pos := 0; pos+batchHeader <= len(raw); {
		size := 12 + int(binary.BigEndian.Uint32(raw[pos+8:]))
		if size < batchHeader || pos+size > len(raw) {
			break
		}
		b, ok := parseBatch(raw[pos : pos+size])
		if !ok {
			break
		}
		b.segment, b.pos, b.size = base, int64(pos), int64(size)
		batches = append(batches, b)
		pos += size
	}
	return batches, int64(len(raw)), nil
}

// parseBatch reads a batch's header, and its record when it is a marker.
func parseBatch(raw []byte) (batch, bool) {
	if crc32.Checksum(raw[21:], castagnoli) != binary.BigEndian.Uint32(raw[17:]) {
		return batch{}, false
	}
	attributes := binary.BigEndian.Uint16(raw[21:])
	b := batch{
		next:          int64(binary.BigEndian.Uint64(raw)) + int64(int32(binary.BigEndian.Uint32(raw[23:]))) + 1,
		leaderEpoch:   int32(binary.BigEndian.Uint32(raw[12:])),
		producer:      int64(binary.BigEndian.Uint64(raw[43:])),
		producerEpoch: int16(binary.BigEndian.Uint16(raw[51:])),
		transactional: attributes&0x10 != 0,
	}
	if attributes&0x20 == 0 {
		return b, true
	}
	var rec kmsg.Record
	if err := rec.ReadFrom(raw[batchHeader:]); err != nil || len(rec.Key) < 4 {
		return batch{}, false
	}
	b.marker = abortMarker
	if binary.BigEndian.Uint16(rec.Key[2:]) == uint16(kmsg.ControlRecordKeyTypeCommit) {
		b.marker = commitMarker
	}
	return b, true
}

// openTransactions returns the last batch of each producer whose transaction has not ended in the partition, in the
// order of these batches.
func (p *partition) openTransactions() []batch {
	open := map[int64]batch{}
	for _, b := range p.batches {
		switch {
		case b.marker != noMarker:
			delete(open, b.producer)
		case b.transactional:
			open[b.producer] = b
		}
	}
	var last []batch
	for _, b := range open {
		last = append(last, b)
	}
	slices.SortFunc(last, func(a, b batch) int { return int(a.next - b.next) })
	return last
}

// appendAbort ends the producer's transaction at the partition's end.
func (p *partition) appendAbort(producer int64, producerEpoch int16) error {
	last := p.batches[len(p.batches)-1]
	raw := abortBatch(last.next, last.leaderEpoch, producer, producerEpoch)
	b, ok := parseBatch(raw)
	if !ok {
		panic("embedded: a marker that cannot be read back")
	}
	segment := p.bases[len(p.bases)-1]
	b.segment, b.size = segment, int64(len(raw))
	if last.segment == segment {
		b.pos = last.pos + last.size
	}
	p.batches = append(p.batches, b)
	return errors.Join(
		appendFile(filepath.Join(p.dir, datName(segment)), raw),
		appendFile(filepath.Join(p.dir, idxName(segment)), indexEntry(last.leaderEpoch)))
}

func appendFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// abortBatch is the batch that ends a transaction without effect.
func abortBatch(offset int64, leaderEpoch int32, producer int64, producerEpoch int16) []byte {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	end := kmsg.EndTxnMarker{}
	rec := kmsg.Record{Key: key.AppendTo(nil), Value: end.AppendTo(nil)}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1) // without the length itself, which takes one byte
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		FirstOffset:          offset,
		PartitionLeaderEpoch: leaderEpoch,
		Magic:                2,
		Attributes:           0x30, // transactional, control
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           producer,
		ProducerEpoch:        producerEpoch,
		FirstSequence:        -1,
		NumRecords:           1,
		Records:              rec.AppendTo(nil),
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], castagnoli))
	return raw
}

// indexEntry is the entry of a batch outside of any open transaction. kfake computes the timestamp in it anew.
func indexEntry(leaderEpoch int32) []byte {
	e := make([]byte, indexEntrySize)
	e[0] = indexVersion
	binary.LittleEndian.PutUint32(e[2:], uint32(leaderEpoch))
	e[1] = byte(crc32.Checksum(e[2:], castagnoli))
	return e
}
