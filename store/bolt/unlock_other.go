//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

// unlock has no way here to let go of the lock that bbolt holds on the file: it is
// free when the process ends.
func (h handle) unlock() error { return nil }
