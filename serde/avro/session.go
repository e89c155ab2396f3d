package avro

import (
	"errors"
	"fmt"
	"io"
	"math"

	hamba "github.com/hamba/avro/v2"
)

const (
	// readAhead is how many bytes the library reads at a time. It affects speed
	// only.
	readAhead = 1024
	// maxKeptBuffer is the largest encode buffer, in bytes, that a session keeps
	// for the next value.
	maxKeptBuffer = 64 << 10
)

// session is what one goroutine needs to encode and decode. It owns a whole
// configuration, and with it its own compiled codecs, because some codecs of
// the library have scratch space in themselves and are not safe to share.
type session struct {
	api    hamba.API
	feed   feeder
	scan   scanner
	reader *hamba.Reader
	writer *hamba.Writer
}

// newConfig returns a configuration that writes arrays and maps like Java does:
// one block, without its size in bytes. Limits on sizes are off because the
// scanner has checked all sizes against the data before the library sees them.
func newConfig() hamba.API {
	return hamba.Config{
		BlockLength:            math.MaxInt32,
		DisableBlockSizeHeader: true,
		MaxByteSliceSize:       -1,
	}.Freeze()
}

func newSession() *session {
	api := newConfig()
	s := &session{api: api, writer: newWriter(api)}
	s.reader = hamba.NewReader(&s.feed, readAhead, hamba.WithReaderConfig(api))
	return s
}

func newWriter(api hamba.API) *hamba.Writer {
	return hamba.NewWriter(nil, 0, hamba.WithWriterConfig(api))
}

// encode appends the encoding of v to dst. After an error the session must not
// be used.
func (s *session) encode(dst []byte, schema hamba.Schema, v any) (out []byte, err error) {
	defer recoverInto(&err)
	s.writer.Reset(nil)
	s.writer.WriteVal(schema, v)
	if s.writer.Error != nil {
		return nil, s.writer.Error
	}
	out = append(dst, s.writer.Buffer()...)
	if out == nil {
		out = []byte{} // an encoded value is never nil, which means null
	}
	if cap(s.writer.Buffer()) > maxKeptBuffer {
		s.writer = newWriter(s.api)
	}
	return out, nil
}

// decode decodes data, which s.scan has just checked, into *ptr. After an error
// the session must not be used.
func (s *session) decode(data []byte, schema hamba.Schema, ptr any) (err error) {
	defer recoverInto(&err)
	s.feed = feeder{data: data, cuts: s.scan.cuts}
	s.reader.ReadVal(schema, ptr)
	if s.reader.Error != nil {
		return s.reader.Error
	}
	// The scanner has found exactly one datum; make sure that the library has
	// read the same one, before the reader is used again.
	s.reader.Peek()
	if !errors.Is(s.reader.Error, io.EOF) {
		return ErrTrailing
	}
	s.reader.Error = nil
	s.feed = feeder{} // do not keep data alive, nor the right to read it
	return nil
}

// feeder is the reader's source. It ends a read at each cut, which is where the
// content of an Avro bytes value begins: the library takes bytes that it has
// buffered from a slab with capacity to spare, so that appending to one decoded
// slice would overwrite the next value. Content not yet buffered gets a slice of
// its own.
type feeder struct {
	data []byte
	pos  int
	cuts []int // ascending positions in data
}

func (f *feeder) Read(p []byte) (int, error) {
	if f.pos == len(f.data) {
		return 0, io.EOF
	}
	for len(f.cuts) > 0 && f.cuts[0] <= f.pos {
		f.cuts = f.cuts[1:]
	}
	end := len(f.data)
	if len(f.cuts) > 0 {
		end = f.cuts[0]
	}
	n := copy(p, f.data[f.pos:end])
	f.pos += n
	return n, nil
}

// recoverInto turns a panic of the library, or of the methods of user types
// that it calls, into an error.
func recoverInto(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("panic in codec: %w", p)
	default:
		*err = fmt.Errorf("panic in codec: %v", p)
	}
}
