package store

import "errors"

// Errors to branch on with errors.Is.
var (
	// ErrClosed is returned by every operation after Close.
	ErrClosed = errors.New("store: closed")

	// ErrNilKey is returned by reads, puts and deletes of a nil key. The empty
	// key is not nil.
	ErrNilKey = errors.New("store: nil key")

	// ErrKeyTooLarge is returned by puts and deletes of keys longer than
	// MaxKeySize, on every backend alike.
	ErrKeyTooLarge = errors.New("store: key too large")

	// ErrRecordTooLarge is returned by puts that would make a changelog record
	// larger than Layered.MaxRecord.
	ErrRecordTooLarge = errors.New("store: record too large for the changelog")

	// ErrCorrupt is returned by a backend whose local data is damaged. The
	// error's text names the file. What helps is to set the data aside
	// (Opener.SetAside) and to rebuild the store from its changelog.
	ErrCorrupt = errors.New("store: corrupt")

	// ErrLocked is returned by Opener.Open and Opener.Remove when another
	// process, or another part of this one, holds the store's data. The error's
	// text names the file.
	ErrLocked = errors.New("store: locked")
)

// MaxKeySize is the length in bytes of the longest key a store takes.
const MaxKeySize = 32767
