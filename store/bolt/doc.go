// Package bolt is a durable store backend: one bbolt file per store.
//
// The file <dir>/<name>.db has two buckets. "data" maps 0x01 ‖ key to the
// timestamp as int64 big-endian ‖ value; the leading byte is there because bbolt
// refuses the empty key. "meta" holds the format version, the store's name and
// the changelog offset, which changes in the same transaction as the data it
// stands for.
//
// One Apply is one transaction: a crash leaves the file as before it or as
// after it. Each costs a sync and the rewriting of every page it touches, so
// batches should be large (some ten thousand keys, sorted) and rare.
//
// # Damage
//
// bbolt trusts its file: damaged pages make it panic, in part on goroutines of
// its own, or read outside the file. Open therefore reads the whole file once
// and checks its structure before bbolt does, and every call that follows turns
// a panic or a memory fault into store.ErrCorrupt. Pages carry no checksums, so
// a flipped bit inside a value is not noticed.
//
// # Locks
//
// The file is locked while it is open. Open and Remove wait for the lock for
// Options.LockTimeout, then fail with store.ErrLocked; the lock dies with the
// process that holds it. A file that was removed or replaced while Open waited
// is opened again by its path, so nobody writes to an orphan.
//
// # Size
//
// bbolt re-uses the pages of deleted keys but never shrinks a file. Open
// rewrites a file most of which is free (Options.CompactFree).
package bolt
