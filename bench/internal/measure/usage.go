package measure

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/report"
)

// usage is what a running process has used so far; zero where the system does not tell.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// usageOf looks at a running process. Of none it finds nothing.
func usageOf(pid int) (u usage) {
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		for line := range bytes.Lines(status) {
			var kib int64
			if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
				u.peak = kib << 10
			}
		}
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third on: the second may hold anything
		for _, i := range []int{11, 12} {                               // user and system time
			if n, err := strconv.ParseInt(string(fields[i]), 10, 64); err == nil {
				u.cpu += time.Duration(n) * tick
			}
		}
	}
	return u
}

// used notes what an ended process has used, given what was seen of it shortly before.
func (p *process) used(f report.Figure, last usage) {
	f[report.CPU] = p.cpu().Seconds()
	if f[report.Peak] = float64(last.peak); last.peak > 0 {
		return
	}
	// On Linux this one begins with the size of the process that started it.
	if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f[report.Peak] = float64(u.Maxrss) * 1024
		if runtime.GOOS == "darwin" {
			f[report.Peak] = float64(u.Maxrss)
		}
	}
}
