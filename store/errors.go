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

	// ErrInvalidTime is returned by puts of windows, sessions and versions with a
	// negative time, or with an end before the start.
	ErrInvalidTime = errors.New("store: invalid time")

	// ErrForeignRecord is returned by a restore for a record that no store of
	// this kind has written: the topic is another store's changelog, or the
	// store was of another kind before.
	ErrForeignRecord = errors.New("store: not a record of this store's changelog")

	// ErrNoKey is returned by value, map and list states before SetKey.
	ErrNoKey = errors.New("store: no current key")

	// ErrCorrupt is returned by a backend whose local data is damaged. The
	// error's text names the file. What helps is to set the data aside
	// (Opener.SetAside) and to rebuild the store from its changelog.
	ErrCorrupt = errors.New("store: corrupt")

	// ErrLocked is returned by Opener.Open and Opener.Remove when another
	// process, or another part of this one, holds the store's data. The error's
	// text names the file.
	ErrLocked = errors.New("store: locked")
)

// MaxKeySize is the length in bytes of the longest key a plain key-value store
// takes. Stores of other kinds use up to 20 bytes of it for themselves.
const MaxKeySize = 32767
