package avro

import (
	"errors"
	"fmt"
	"io"
	"math"

	hamba "github.com/hamba/avro/v2"

	"github.com/millrace-streams/millrace/serde"
)

// readAhead is how many bytes the library reads at a time. It affects speed
// only.
const readAhead = 1024

// newConfig returns a configuration that writes arrays and maps like Java does:
// one block, without its size in bytes. Limits on sizes are off because the
// scanner has checked all sizes against the data before the library sees them.
// It has its own caches and is safe for concurrent use.
func newConfig() hamba.API {
	return hamba.Config{
		BlockLength:            math.MaxInt32,
		DisableBlockSizeHeader: true,
		MaxByteSliceSize:       -1,
	}.Freeze()
}

type codec[T any] struct {
	name   string
	schema hamba.Schema
	shape  *shape
	api    hamba.API
}

func (c *codec[T]) Append(dst []byte, v T) ([]byte, error) {
	data, err := c.marshal(v)
	if err != nil {
		return nil, fmt.Errorf("avro: cannot encode %s: %w", c.name, err)
	}
	if dst == nil {
		return data, nil
	}
	return append(dst, data...), nil
}

// marshal returns the encoding of v in a new slice, which is not nil.
func (c *codec[T]) marshal(v T) (data []byte, err error) {
	defer recoverInto(&err)
	return c.api.Marshal(c.schema, v)
}

func (c *codec[T]) Decode(data []byte) (T, error) {
	var v T
	if err := c.decode(data, &v); err != nil {
		var zero T
		return zero, &serde.DecodeError{Type: c.name, Len: len(data), Err: err}
	}
	return v, nil
}

// decode decodes data into *v, of which an error leaves some part.
func (c *codec[T]) decode(data []byte, v *T) (err error) {
	defer recoverInto(&err)
	scan := scanner{data: data}
	if err := scan.datum(c.shape); err != nil {
		return err
	}
	feed := &feeder{data: data, cuts: scan.cuts}
	reader := hamba.NewReader(feed, min(len(data)+1, readAhead), hamba.WithReaderConfig(c.api))
	reader.ReadVal(c.schema, v)
	if reader.Error != nil {
		return reader.Error
	}
	// The scanner has found exactly one datum; make sure that the library has
	// read the same one.
	if reader.Peek(); !errors.Is(reader.Error, io.EOF) {
		return ErrTrailing
	}
	return nil
}

// feeder is a reader that ends a read at each cut, which is where the content
// of a string or of bytes begins. Content that the library has buffered already
// it takes from a slab of 1 KiB with capacity to spare: appending to one decoded
// slice would overwrite the next value, and a short string kept by the
// application would hold the whole slab. Content not yet buffered gets memory of
// its own.
type feeder struct {
	data []byte
	pos  int
	cuts []int // positions in data, ascending
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
