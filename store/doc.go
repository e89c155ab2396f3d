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
// on another one, and a [Reader], which others use between two changes of what is
// committed. The package starts no goroutine, reads no clock and opens no
// file; backends do, in the packages store/memory and store/bolt.
//
// # Kinds
//
// A declaration says what kind of store it is; its View gives typed access:
//
//	KeyValue    a value per key; WithTTL makes rows expire by event time
//	Window      a value, or several, per key and start of a window
//	Session     a value per key and session
//	Versioned   the versions of a value per key, and what was valid when
//	ValueState, MapState, ListState   Flink's handles, for the key at hand
//
// There are no other backends and no wrappers for them: each kind is a [Layout]
// of keys over the same write sets. What the changelog holds is byte for byte
// what Kafka Streams' stores of the kind write.
//
// What a store shows is decided on reading, exactly and on every backend alike:
// a window whose start is at most the store's time - retention is not there,
// whether or not it was removed yet. The store's time is the highest it was ever
// given in a put; rows with a TTL go by the stream time that [Layered.Advance]
// tells. [Layered.Expire], called by the task before each commit, removes what is
// not shown any more.
//
// # Keys and values: order, nil and empty
//
// This holds for every kind of store and every backend:
//
//   - Keys order by their bytes, as the serde writes them. Ranges and scans go by
//     that order. Go's order of strings is kept; signed integers need
//     serde.OrderedInt64, since Java's encoding puts negative ones above positive
//     ones.
//   - The empty key and the empty value are ordinary, and remain what they are
//     through commit, flush and restore.
//   - A nil key, that is a nil []byte or a nil pointer as K, is refused with
//     [ErrNilKey].
//   - A nil value, a nil []byte or a nil pointer as V, means delete. No read and
//     no scan gives one. An empty []byte is not nil.
//   - Keys are at most [MaxKeySize] bytes on every backend, with what the kind
//     adds.
//   - Headers travel to the changelog only: backends keep key, value and
//     timestamp.
//   - Scans are live: see [Layered.Scan] for what fn may do.
//
// # Queries
//
// What is committed can be read from any goroutine, through the same declarations:
//
//	counts := Counts.Query(app)       // or a test driver
//	n, ok, err := counts.Get("word")  // ReadOnlyKeyValue, ReadOnlyWindow, ...
//
// A query sees the partitions that the process works on. It never sees what is not
// committed, and never holds up the worker for longer than it takes to copy a few
// hundred rows, whatever fn does meanwhile; fn may block for as long as it likes.
//
//   - A get, or another query of one key, goes to the key's partition. If rows of
//     the key may be in others, since it is not known by what rule the topic was
//     written or a processor keeps them under keys of its own, it then looks in all
//     that are here, and answers from the first that has any. Nothing found is an
//     answer only if the key's own partition is here: else it is [ErrNotLocal].
//   - A scan takes one partition after the other, by ascending number, each in the
//     order that the view of the store has. Partitions are not merged. Its error
//     comes before the first row if one of them cannot be read.
//   - A scan is live, as those of views are, but copies rows in pieces, of 16 at
//     first and of 256 at most: each row is as it was committed when its piece was
//     copied. Commits that come meanwhile are seen from the next piece on. A row
//     that was there all the time is seen once.
//   - What is too old is not seen, by the time of what is committed: rows with a
//     TTL by that of the task, windows, sessions and versions by that of the store.
//     That time is looked at once for each query and partition.
//   - What fn and serdes do is on the caller's goroutine. Values are the caller's.
//   - A partition that cannot be read is an [UnavailableError], which names it.
package store
