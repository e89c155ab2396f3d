package avro

import (
	"fmt"
	"io"
	"math"
)

const (
	// maxDepth bounds how deeply records, arrays, maps and unions may nest in
	// data. Decoding recurses, and a Go stack that overflows ends the process.
	maxDepth = 10_000
	// maxEmptyItems bounds the array items of a datum that take no bytes, such
	// as nulls: a few bytes of data could otherwise ask for any number of them.
	maxEmptyItems = 1 << 16
)

// scanner walks over data to check that it is exactly one datum of a shape.
// The library that decodes is not made for hostile data: it takes some data cut
// short for complete, loops over and allocates for counts beyond the data, and
// recurses without bound. The scanner lets it see well-formed data only.
type scanner struct {
	data  []byte
	pos   int
	depth int
	empty int   // array items of no bytes so far
	cuts  []int // where the content of each string and bytes value begins
}

// datum checks all of the data.
func (s *scanner) datum(sh *shape) error {
	if err := s.value(sh); err != nil {
		return err
	}
	if s.pos != len(s.data) {
		return fmt.Errorf("%w: it ends at byte %d", ErrTrailing, s.pos)
	}
	return nil
}

func (s *scanner) value(sh *shape) error {
	switch sh.kind {
	case kindNull:
		return nil
	case kindBoolean:
		return s.boolean()
	case kindInt:
		_, err := s.int()
		return err
	case kindLong:
		_, err := s.long()
		return err
	case kindFixed:
		return s.skip(int64(sh.size))
	case kindText:
		return s.text()
	case kindEnum:
		_, err := s.index(sh.size)
		return err
	default:
		return s.nested(sh)
	}
}

func (s *scanner) nested(sh *shape) error {
	if s.depth++; s.depth > maxDepth {
		return s.malformed("nested deeper than %d levels", maxDepth)
	}
	err := s.inside(sh)
	s.depth--
	return err
}

func (s *scanner) inside(sh *shape) error {
	switch sh.kind {
	case kindRecord:
		for _, field := range sh.parts {
			if err := s.value(field); err != nil {
				return err
			}
		}
		return nil
	case kindUnion:
		branch, err := s.index(len(sh.parts))
		if err != nil {
			return err
		}
		return s.value(sh.parts[branch])
	default:
		return s.blocks(sh)
	}
}

// blocks walks over the blocks of an array or map, up to the empty one that
// ends it.
func (s *scanner) blocks(sh *shape) error {
	for {
		count, size, err := s.blockHeader()
		if err != nil || count == 0 {
			return err
		}
		start := s.pos
		if err := s.items(sh, count); err != nil {
			return err
		}
		if size >= 0 && int64(s.pos-start) != size {
			return s.malformed("a block of %d bytes says it has %d", s.pos-start, size)
		}
	}
}

// blockHeader returns the number of items of a block and its size in bytes,
// which is -1 if the header does not say.
func (s *scanner) blockHeader() (count, size int64, err error) {
	count, err = s.long()
	if err != nil || count >= 0 {
		return count, -1, err
	}
	if count == math.MinInt64 {
		return 0, 0, s.malformed("block count out of range")
	}
	size, err = s.long()
	if err == nil && size < 0 {
		err = s.malformed("negative block size")
	}
	return -count, size, err
}

// items walks over the items of a block. Each takes at least one byte or is
// counted as empty, so a count beyond the data soon fails.
func (s *scanner) items(sh *shape, count int64) error {
	for range count {
		before := s.pos
		if sh.kind == kindMap {
			if err := s.text(); err != nil {
				return err
			}
		}
		if err := s.value(sh.item); err != nil {
			return err
		}
		if s.pos > before {
			continue
		}
		if s.empty++; s.empty > maxEmptyItems {
			return s.malformed("more than %d items without content", maxEmptyItems)
		}
	}
	return nil
}

func (s *scanner) boolean() error {
	if s.pos < len(s.data) && s.data[s.pos] > 1 {
		return s.malformed("a boolean is neither 0 nor 1")
	}
	return s.skip(1)
}

// text walks over a length and that many bytes, and cuts between the two.
func (s *scanner) text() error {
	n, err := s.long()
	if err != nil {
		return err
	}
	if n < 0 {
		return s.malformed("negative length")
	}
	if n > 0 {
		s.cuts = append(s.cuts, s.pos)
	}
	return s.skip(n)
}

// index reads the index of a union branch or an enum symbol, in [0, n).
func (s *scanner) index(n int) (int, error) {
	i, err := s.int()
	if err == nil && (i < 0 || int64(i) >= int64(n)) {
		err = s.malformed("index %d is not below %d", i, n)
	}
	return int(i), err
}

func (s *scanner) int() (int32, error) {
	start := s.pos
	v, err := s.varint()
	if err == nil && (v > math.MaxUint32 || s.pos-start > 5) {
		err = s.malformed("an int of more than 32 bits")
	}
	return int32(uint32(v)>>1) ^ -int32(v&1), err
}

func (s *scanner) long() (int64, error) {
	v, err := s.varint()
	return int64(v>>1) ^ -int64(v&1), err
}

// varint reads an unsigned number: 7 bits a byte, lowest first, the top bit set
// on all bytes but the last.
func (s *scanner) varint() (uint64, error) {
	var v uint64
	for shift := 0; s.pos < len(s.data); shift += 7 {
		b := s.data[s.pos]
		if shift == 63 && b > 1 {
			return 0, s.malformed("a number of more than 64 bits")
		}
		s.pos++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, s.short()
}

func (s *scanner) skip(n int64) error {
	if n > int64(len(s.data)-s.pos) {
		return s.short()
	}
	s.pos += int(n)
	return nil
}

func (s *scanner) short() error {
	return fmt.Errorf("%w: %w", ErrMalformed, io.ErrUnexpectedEOF)
}

func (s *scanner) malformed(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", ErrMalformed, s.pos, fmt.Sprintf(format, args...))
}
