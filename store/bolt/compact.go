package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

const compactSuffix = ".compact"

// compact rewrites the file without its free pages, under the lock of the old
// one. The new file takes the old one's place at once or not at all; a failure,
// such as a full disk, leaves the old one, which is as good.
func (o Options) compact(h handle, path string) {
	tmp := path + compactSuffix
	defer func() {
		_ = recover() // the old file was checked: at worst it stays
		_ = os.Remove(tmp)
	}()
	dst, err := o.lock(tmp, time.Now().Add(o.LockTimeout), false)
	if err != nil {
		return
	}
	err = bbolt.Compact(dst.db, h.db, o.TxBytes)
	if err = errors.Join(err, dst.db.Sync(), dst.db.Close()); err != nil {
		return
	}
	if os.Rename(tmp, path) == nil && !o.NoSync {
		_ = syncDir(filepath.Dir(path)) // else the old file may be back after a power loss
	}
}
