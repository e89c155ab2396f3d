package bolt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace-streams/millrace/store"
)

// A batch that is too large for one transaction goes into several. So that it is
// still applied wholly or not at all, it is first written to a file of its own;
// each transaction notes how much of it is done. Who finds such a note, after a
// crash or a full disk, does the rest.
//
//	magic | id u64 | offset i64 | number of entries u64 | entries | CRC-32C u32
//	entry: 0 live or 1 deleted | timestamp i64 | lengths of key and value, u32 each | key | value
//
// all big-endian.
const (
	redoMagic  = "millrace redo 1\n"
	redoSuffix = ".redo"
	redoHeader = len(redoMagic) + 3*8
	redoEntry  = 1 + 8 + 4 + 4
)

var errRedo = errors.New("a batch is half applied, and the file with the rest is missing or damaged")

// redo finishes a batch that a crash or an error has left half applied, or undoes a first load.
func (b *Backend) redo() error {
	switch b.state.redo.id {
	case 0:
		return nil
	case loading:
		return b.wipe()
	}
	p, err := readRedo(b.path+redoSuffix, b.state.redo)
	if errors.Is(err, errRedo) {
		return corrupt(b.path, err)
	}
	if err != nil {
		return err
	}
	return b.write(p)
}

// writeRedo makes a batch durable beside the file.
func (o Options) writeRedo(path string, p *pending) (err error) {
	path += redoSuffix
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(path)
		}
	}()
	sum := crc32.New(castagnoli)
	buffered := bufio.NewWriterSize(f, 1<<20)
	out := io.MultiWriter(buffered, sum)
	head := append([]byte(nil), redoMagic...)
	entries := 0
	for range p.all {
		entries++
	}
	for _, n := range []uint64{p.redo, uint64(p.offset), uint64(entries)} {
		head = binary.BigEndian.AppendUint64(head, n)
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	var buf []byte
	for e := range p.all {
		buf = appendRedo(buf[:0], e)
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	if _, err := buffered.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil || o.NoSync {
		return err
	}
	return errors.Join(f.Sync(), syncDir(filepath.Dir(path)))
}

func appendRedo(dst []byte, e *store.Entry) []byte {
	kind := byte(0)
	if e.Deleted {
		kind = 1
	}
	dst = append(dst, kind)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Timestamp))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Key)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Value)))
	return append(append(dst, e.Key...), e.Value...)
}

// readRedo reads the batch of a mark. What is not that batch, whole, is errRedo.
func readRedo(path string, mark redoMark) (*pending, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRedo
	}
	if err != nil {
		return nil, err
	}
	end := len(b) - crcSize
	if end < redoHeader || string(b[:len(redoMagic)]) != redoMagic || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return nil, errRedo
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[len(redoMagic)+8*i:]) }
	var entries []*store.Entry
	for rest := b[redoHeader:end]; len(rest) > 0; {
		e, n := redone(rest)
		if e == nil {
			return nil, errRedo
		}
		entries, rest = append(entries, e), rest[n:]
	}
	if at(0) != mark.id || uint64(len(entries)) != at(2) || mark.applied > int64(len(entries)) {
		return nil, errRedo
	}
	return &pending{entries: entries[mark.applied:], redo: mark.id, offset: int64(at(1)), applied: int(mark.applied)}, nil
}

// redone reads the entry at the head of b, and returns its length there.
func redone(b []byte) (*store.Entry, int) {
	if len(b) < redoEntry {
		return nil, 0
	}
	key, value := int(binary.BigEndian.Uint32(b[9:])), int(binary.BigEndian.Uint32(b[13:]))
	n := redoEntry + key + value
	if len(b) < n {
		return nil, 0
	}
	return &store.Entry{
		Key: string(b[redoEntry : redoEntry+key]), Value: b[redoEntry+key : n],
		Timestamp: int64(binary.BigEndian.Uint64(b[1:])), Deleted: b[0] == 1,
	}, n
}

// syncDir makes what was made, renamed or removed in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
