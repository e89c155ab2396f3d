package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// This file knows bbolt's format, version 2. Integers are in the machine's own
// byte order.
//
//	page          id u64 | flags u16 | count u16 | overflow u32 | elements | data
//	leaf element  flags u32 | pos u32 | ksize u32 | vsize u32    pos counts from the element
//	branch elem.  pos u32 | ksize u32 | pgid u64
//	meta          magic u32 | version u32 | page size u32 | flags u32 |
//	              root pgid u64 | sequence u64 | freelist pgid u64 |
//	              high water pgid u64 | txid u64 | checksum u64 (FNV-1a of all before)
//	bucket value  root pgid u64 | sequence u64 | page inline if root is 0
const (
	pageHeader   = 16
	elementSize  = 16
	bucketHeader = 16

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf element

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
	maxDepth    = 64
)

var ne = binary.NativeEndian

type meta struct {
	pageSize              int64
	root, freelist        uint64
	highWater, txid, size uint64 // pages: size is the file's
}

// usage is what a check finds out beside damage.
type usage struct {
	pages, used int64
	pageSize    int64
}

func (u usage) worthCompacting(o Options) bool {
	return u.pages*u.pageSize > o.CompactSize && float64(u.pages-u.used) > o.CompactFree*float64(u.pages)
}

// verifier walks the trees as of the last transaction.
type verifier struct {
	file *os.File
	name string
	meta meta
	seen []bool // by page
	used int64
	bufs [maxDepth + 1][]byte // one page for each level of the tree
	held contents             // of the data bucket
}

// leafRule checks one element of a leaf.
type leafRule func(element) error

// verify checks all that bbolt relies on when it opens and reads a file: that
// every reachable page lies in the file, says who it is, is reached once, that
// its elements lie in it, and that keys ascend from the one that its parent
// names. It checks every entry as well, and that all of them together are what
// the file says it holds.
func verify(f *os.File, name string) (usage, error) {
	m, err := pickMeta(f)
	if err != nil {
		return usage{}, err
	}
	v := &verifier{file: f, name: name, meta: m, seen: make([]bool, m.highWater)}
	v.seen[0], v.seen[1], v.used = true, true, 2
	if err := v.store(); err != nil {
		return usage{}, err
	}
	if err := v.freelist(); err != nil {
		return usage{}, err
	}
	return usage{pages: int64(m.highWater), used: v.used, pageSize: m.pageSize}, nil
}

// store checks the two buckets, the one that says what to expect first.
func (v *verifier) store() error {
	buckets := map[string][]byte{}
	err := v.tree(v.meta.root, nil, nil, 0, func(e element) error {
		if !e.bucket || string(e.key) != string(dataBucket) && string(e.key) != string(metaBucket) {
			return fmt.Errorf("%q is no bucket of ours", e.key)
		}
		buckets[string(e.key)] = append([]byte(nil), e.value...)
		return nil
	})
	if err != nil || len(buckets) == 0 {
		return err // a new file has none
	}
	if len(buckets) < 2 {
		return errNoBucket
	}
	meta := map[string][]byte{}
	err = v.bucket(buckets[string(metaBucket)], 1, func(e element) error {
		meta[string(e.key)] = append([]byte(nil), e.value...)
		return nil
	})
	if err != nil {
		return err
	}
	want, err := readState(v.name, func(key []byte) []byte { return meta[string(key)] })
	if err != nil {
		return err
	}
	if err := v.bucket(buckets[string(dataBucket)], 1, v.entry); err != nil {
		return err
	}
	if v.held != want.contents {
		return fmt.Errorf("%d entries that add up to %x, not %d to %x", v.held.count, v.held.sum, want.count, want.sum)
	}
	return nil
}

// entry is the rule of the data bucket.
func (v *verifier) entry(e element) error {
	if e.bucket {
		return errors.New("a bucket among the entries")
	}
	_, _, crc, err := unseal(e.key, e.value)
	if err == nil {
		v.held.add(crc)
	}
	return err
}

// pickMeta picks the meta page that bbolt will: the valid one of the higher
// transaction.
func pickMeta(f *os.File) (meta, error) {
	info, err := f.Stat()
	if err != nil {
		return meta{}, err
	}
	var best meta
	for _, at := range metaOffsets(f, info.Size()) {
		m, ok := metaAt(f, at, info.Size())
		if ok && (best.pageSize == 0 || m.txid > best.txid) {
			best = m
		}
	}
	if best.pageSize == 0 {
		return meta{}, errors.New("no valid meta page")
	}
	if best.highWater > best.size || best.highWater < 3 {
		return meta{}, fmt.Errorf("%d pages in use, %d in the file", best.highWater, best.size)
	}
	return best, nil
}

// metaOffsets are where the two meta pages may be: the second one's place
// depends on the page size, which the first one tells if it is valid.
func metaOffsets(f *os.File, size int64) []int64 {
	if m, ok := metaAt(f, 0, size); ok {
		return []int64{0, m.pageSize}
	}
	var offsets []int64
	for at := int64(1 << 10); at <= 16<<20 && at < size; at <<= 1 {
		if m, ok := metaAt(f, at, size); ok && m.pageSize == at {
			offsets = append(offsets, at)
		}
	}
	return offsets
}

func metaAt(f *os.File, at, fileSize int64) (meta, bool) {
	const size, checksum = 64, 56
	var buf [pageHeader + size]byte
	if _, err := f.ReadAt(buf[:], at); err != nil {
		return meta{}, false
	}
	b := buf[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:checksum])
	if ne.Uint32(b) != boltMagic || ne.Uint32(b[4:]) != boltVersion || ne.Uint64(b[checksum:]) != sum.Sum64() {
		return meta{}, false
	}
	m := meta{
		pageSize: int64(ne.Uint32(b[8:])), root: ne.Uint64(b[16:]), freelist: ne.Uint64(b[32:]),
		highWater: ne.Uint64(b[40:]), txid: ne.Uint64(b[48:]),
	}
	if m.pageSize < 1<<10 {
		return meta{}, false
	}
	m.size = uint64(fileSize / m.pageSize)
	return m, true
}

// page reads a page with its overflow, and marks all of it as seen. The bytes
// are valid until the next page of the same depth.
func (v *verifier) page(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= v.meta.highWater {
		return nil, fmt.Errorf("page %d: not in the file's %d pages", id, v.meta.highWater)
	}
	buf := v.buf(depth, 1)
	if err := v.read(buf, id); err != nil {
		return nil, err
	}
	if ne.Uint64(buf) != id {
		return nil, fmt.Errorf("page %d: says it is page %d", id, ne.Uint64(buf))
	}
	overflow := uint64(ne.Uint32(buf[12:]))
	if overflow >= v.meta.highWater-id {
		return nil, fmt.Errorf("page %d: %d overflow pages reach out of the file", id, overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if v.seen[i] {
			return nil, fmt.Errorf("page %d: in use twice", i)
		}
		v.seen[i] = true
	}
	v.used += int64(overflow) + 1
	if overflow > 0 {
		buf = v.buf(depth, int64(overflow)+1)
		if err := v.read(buf, id); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func (v *verifier) buf(depth int, pages int64) []byte {
	n := int(pages * v.meta.pageSize)
	if cap(v.bufs[depth]) < n {
		v.bufs[depth] = make([]byte, n)
	}
	return v.bufs[depth][:n]
}

func (v *verifier) read(buf []byte, id uint64) error {
	_, err := v.file.ReadAt(buf, int64(id)*v.meta.pageSize)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("page %d: cut off", id)
	}
	return err
}

// tree checks the pages from id down, whose keys are to begin with from and to
// lie below to; nil is open.
func (v *verifier) tree(id uint64, from, to []byte, depth int, rule leafRule) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d: too deep", id)
	}
	buf, err := v.page(id, depth)
	if err != nil {
		return err
	}
	if err := v.node(buf, from, to, depth, rule); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// node checks one page's elements and what hangs below them.
func (v *verifier) node(buf, from, to []byte, depth int, rule leafRule) error {
	flags, count := ne.Uint16(buf[8:]), int(ne.Uint16(buf[10:]))
	if flags != flagLeaf && flags != flagBranch {
		return fmt.Errorf("type %#x", flags)
	}
	if count == 0 && (flags == flagBranch || from != nil) {
		return errors.New("no elements")
	}
	var last []byte
	for i := range count {
		e, err := elementOf(buf, flags, i)
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		switch {
		case i == 0 && from != nil && !bytes.Equal(e.key, from):
			return errors.New("the first key is not the one that the page above names")
		case i > 0 && bytes.Compare(e.key, last) <= 0, to != nil && bytes.Compare(e.key, to) >= 0:
			return fmt.Errorf("element %d: out of order", i)
		}
		last = e.key
		if flags == flagLeaf {
			err = rule(e)
		} else {
			err = v.child(buf, i, count, e, to, depth, rule)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// child checks what a branch's element i leads to.
func (v *verifier) child(buf []byte, i, count int, e element, to []byte, depth int, rule leafRule) error {
	if i+1 < count {
		next, err := elementOf(buf, flagBranch, i+1)
		if err != nil {
			return err
		}
		to = next.key
	}
	return v.tree(e.child, e.key, to, depth+1, rule)
}

// bucket checks the tree of a bucket, whose value says where it is.
func (v *verifier) bucket(value []byte, depth int, rule leafRule) error {
	if len(value) < bucketHeader {
		return errors.New("bucket without header")
	}
	if root := ne.Uint64(value); root != 0 {
		return v.tree(root, nil, nil, depth, rule)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader || ne.Uint16(inline[8:]) != flagLeaf {
		return errors.New("inline bucket damaged")
	}
	return v.node(inline, nil, nil, depth, rule)
}

// element is one entry of a leaf or branch page.
type element struct {
	key, value []byte
	child      uint64
	bucket     bool
}

var errBounds = errors.New("outside its page")

func elementOf(buf []byte, flags uint16, i int) (element, error) {
	at := pageHeader + i*elementSize
	if at+elementSize > len(buf) {
		return element{}, errBounds
	}
	raw := buf[at : at+elementSize]
	var e element
	var pos, ksize, vsize int
	if flags == flagBranch {
		pos, ksize, e.child = int(ne.Uint32(raw)), int(ne.Uint32(raw[4:])), ne.Uint64(raw[8:])
	} else {
		flags := ne.Uint32(raw)
		if flags&^flagBucket != 0 {
			return element{}, fmt.Errorf("flags %#x", flags)
		}
		e.bucket = flags == flagBucket
		pos, ksize, vsize = int(ne.Uint32(raw[4:])), int(ne.Uint32(raw[8:])), int(ne.Uint32(raw[12:]))
	}
	start := at + pos
	if ksize == 0 || start+ksize+vsize > len(buf) {
		return element{}, errBounds
	}
	e.key = buf[start : start+ksize]
	e.value = buf[start+ksize : start+ksize+vsize]
	return e, nil
}

// freelist checks a list that was written to the file; ours are not, but a
// fresh file has one.
func (v *verifier) freelist() error {
	if v.meta.freelist == noFreelist {
		return nil
	}
	buf, err := v.page(v.meta.freelist, 0)
	if err != nil {
		return fmt.Errorf("freelist: %w", err)
	}
	count, ids := uint64(ne.Uint16(buf[10:])), buf[pageHeader:]
	if count == 0xFFFF {
		count, ids = ne.Uint64(ids), ids[8:]
	}
	if ne.Uint16(buf[8:]) != flagFreelist || count > uint64(len(ids)/8) {
		return fmt.Errorf("freelist: page %d damaged", v.meta.freelist)
	}
	for ; count > 0; count, ids = count-1, ids[8:] {
		if id := ne.Uint64(ids); id < 2 || id >= v.meta.highWater || v.seen[id] {
			return fmt.Errorf("freelist: page %d is in use", id)
		}
	}
	return nil
}
