package serde

import (
	"errors"
	"fmt"
)

// ErrLength says that data has a length that no encoding of the type has.
// It is wrapped by the [*DecodeError] of the fixed-width serdes.
var ErrLength = errors.New("wrong length")

// DecodeError says that data could not be decoded. It names the type and the
// length of the data, but holds none of its bytes: they may be confidential.
type DecodeError struct {
	// Type is the type wanted, for people to read: "int64", "JSON app.Order".
	Type string
	// Len is the length of the data in bytes.
	Len int
	// Err is the cause; it is never nil.
	Err error
}

// Error describes the failure in one line.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("serde: cannot decode %d bytes as %s: %v", e.Len, e.Type, e.Err)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// decodeError returns err as a *DecodeError, and unchanged if it is one.
func decodeError(typ string, data []byte, err error) error {
	var already *DecodeError
	if errors.As(err, &already) {
		return err
	}
	return &DecodeError{Type: typ, Len: len(data), Err: err}
}

// wrongLength returns the error for data that is not want bytes long.
func wrongLength(typ string, data []byte, want int) error {
	return &DecodeError{Type: typ, Len: len(data), Err: fmt.Errorf("%w, want %d", ErrLength, want)}
}
