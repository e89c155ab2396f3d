//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package bolt

import "syscall"

// unlock lets go of the lock that bbolt holds on the file. To close the file is not
// enough as long as it is mapped.
func (h handle) unlock() error { return syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN) }
