// Package store holds the state of tasks: keyed stores as layers of write sets
// over a backend, and the typed views through which processors see them.
//
// # Layers
//
// One store of one task is a [Layered]. A read looks through its layers,
// newest first:
//
//	uncommitted   what the task wrote since the last commit was prepared
//	committing    what a commit in flight carries (absent when none is)
//	committed     what is in the changelog for good, but not yet in the backend
//	flushing      what is on its way to the backend (absent when nothing is)
//	backend       memory, a bbolt file, ... with the changelog offset it holds
//
// A layer is a [WriteSet]: the last write per key, in the order the keys were
// first touched. One structure is at once the cache (the last value wins), the
// changelog source (each key is encoded once per commit), and the rollback
// (drop it). Deletes are tombstones: entries that hide what lies below them.
//
// # Durability
//
// The changelog topic is the truth. A backend only ever receives committed
// writes, in one atomic step with the changelog offset they reach
// ([Backend.Apply]), so local state is never ahead of the committed changelog
// and a crash loses nothing but time: the tail from [Backend.Offset] is read
// again.
//
// # Goroutines
//
// A Layered, its write sets and its views belong to one goroutine, the
// worker's. Only Backend.Apply (and reads made on the backend itself) may run
// on another one. The package starts no goroutine, reads no clock and opens no
// file; backends do, in the packages store/memory and store/bolt.
//
// # Keys and values
//
// Keys order by their bytes. The empty key and the empty value are ordinary; a
// nil key is refused with [ErrNilKey], a nil value means delete. Keys are at
// most [MaxKeySize] bytes on every backend. Headers travel to the changelog
// only: backends keep key, value and timestamp.
package store
