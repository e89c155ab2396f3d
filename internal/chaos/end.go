package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
)

// end is how a process ended.
type end struct {
	status syscall.WaitStatus
	words  string // its last ones
}

// String says how.
func (e end) String() string {
	if e.status.Signaled() {
		return fmt.Sprintf("signal %v", e.status.Signal())
	}
	if e.words == "" {
		return fmt.Sprintf("exit code %d", e.status.ExitStatus())
	}
	return fmt.Sprintf("exit code %d: %s", e.status.ExitStatus(), e.words)
}

// documented are errors with which an application may end though nothing was done to its process: the documentation of
// millrace says so. Each is counted.
var documented = map[string]string{
	"no broker has answered within": "no broker within 30 s of the start",
	"are not ready":                 "no broker within 30 s of the start",
}

// whenStopped are errors with which an orderly stop may end.
var whenStopped = map[string]string{
	"the orderly shutdown took too long": "shutdown timeout",
}

// cause returns why the process ended, of the causes that there are. ok is false when it is none of them.
func (e end) cause(doom []string) (cause string, ok bool) {
	has := func(cause string) bool { return slices.Contains(doom, cause) }
	switch {
	case e.status.Signaled() && e.status.Signal() == syscall.SIGTERM: // it had just begun
		return causeStopped, has(causeStopped)
	case e.status.Signaled():
		return causeKilled, e.status.Signal() == syscall.SIGKILL && has(causeKilled)
	case e.status.ExitStatus() == 0:
		return causeStopped, has(causeStopped)
	case has(causePanic) && strings.Contains(e.words, panicText):
		return causePanic, true
	case has(causeGoexit) && strings.Contains(e.words, "Goexit"):
		return causeGoexit, true
	case has(causeDisk) && isDiskError(e.words):
		return causeDisk, true
	}
	for text, name := range documented {
		if strings.Contains(e.words, text) {
			return name, true
		}
	}
	for text, name := range whenStopped {
		if strings.Contains(e.words, text) && has(causeStopped) {
			return name, true
		}
	}
	return "", false
}

// lastWords returns why a process said that it ended, "" if it did not say.
func lastWords(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		_, _ = f.Seek(-enough, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if words, ok := strings.CutPrefix(lines[i], endPrefix); ok {
			return words
		}
	}
	return ""
}
