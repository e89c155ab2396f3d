// Package bolt is a durable store backend: one bbolt file per store.
//
// The file <dir>/<name>.db has two buckets. "data" maps 0x01 ‖ key to CRC-32C ‖
// timestamp ‖ value; the leading byte is there because bbolt refuses the empty
// key, and the checksum covers all the rest. "meta" holds the format version, the
// store's name, and the state: the changelog offset, and number and sum of the
// entries. It changes in the same transaction as the data it stands for.
//
// # Batches
//
// One Apply leaves the file as before it or as after it, whenever the process
// dies. As a rule it is one transaction. One that would take more memory than
// Options.TxBytes is cut into several; the batch is first written to
// <name>.db.redo, and each transaction notes how far it has got. Open, and the
// next Apply, do what is left of a batch that a crash or a full disk has cut
// short.
//
// The first load of an empty file, by a restore, does without that file: its
// transactions leave a mark that nothing of them counts, until the last one. Who
// finds the mark empties the file.
//
// Each transaction costs two syncs and the rewriting of every page it touches, so
// batches should be large (some ten thousand keys) and rare.
//
// # Damage
//
// bbolt trusts its file: damaged pages make it panic, in part on goroutines of
// its own, or read outside the file, and its pages carry no checksums. So Open
// reads the whole file once before bbolt does. It checks the structure, the
// checksum of every entry, and that all entries together are those that the
// state tells of: a page that is an older image of itself is noticed by their
// sum. Whatever happens to a page, the store is refused with store.ErrCorrupt or
// is as it was at the offset it tells. There is no way to leave the check out:
// bbolt itself reads all pages when it opens a file, and ends the process when it
// comes across a bad one.
//
// While the file is open, every read checks the entries it returns or replaces,
// and every call turns a panic or a memory fault into an error. Once the file has
// turned out damaged, every call says so: ErrCorrupt stays. What no call comes
// across is left for the next Open.
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
// bbolt re-uses the pages of deleted and replaced entries but never shrinks a
// file. A transaction writes each page it touches to a free place, and the old
// place is free for the next one: a file that holds n bytes in its pages, of
// which a transaction touches m, has room for n+m, and grows by a megabyte at a
// time. Reads never keep pages from being used again for longer than the Apply
// they overlap with. Open rewrites a file most of which is free
// (Options.CompactFree), which takes room for the new one beside it.
package bolt
