//go:build !unix

package embedded

import "os"

// lockFile opens the file. Without flock two brokers on one directory are not kept apart.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
}

func unlockFile(f *os.File) error { return f.Close() }

// sizeAndInode has no inode here.
func sizeAndInode(path string) (size int64, inode uint64, err error) {
	size, err = fileSize(path)
	return size, 0, err
}

// bootID is empty: no log that was not closed is trusted here.
func bootID() string { return "" }
