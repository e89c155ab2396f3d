package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// peak returns the largest resident set of this process so far, in bytes, 0 if it is not known. On Linux it is not
// getrusage's: that one begins with the size of the process that started this one.
func peak() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		lines := bufio.NewScanner(bytes.NewReader(status))
		for lines.Scan() {
			var kib int64
			if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kib); err == nil {
				return kib << 10
			}
		}
	}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
