//go:build unix

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// lockFile opens the file and takes its exclusive lock, which the kernel gives back when the process ends, however it
// ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unlockFile gives the lock back and closes the file. Closing alone is not enough: a child process that another goroutine is
// just starting has the file open as well, until it has become another program.
func unlockFile(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// sizeAndInode are zero for a file that is not there.
func sizeAndInode(path string) (size int64, inode uint64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), uint64(info.Sys().(*syscall.Stat_t).Ino), nil
}

// bootID names the time since the machine's last start. It is empty where that cannot be told.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
