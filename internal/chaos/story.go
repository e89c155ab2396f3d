package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// story is what happens in a run: a line for each fault and each life, and the failures.
type story struct {
	out io.Writer // may be nil
	run time.Time

	mu       sync.Mutex
	lines    []string
	failures []string
	met      map[string]int // faults that took effect, by kind
	missed   map[string]int // faults that met nothing
	ends     map[string]int // of processes, by cause
	rounds   int            // that were compared
	slowest  time.Duration  // from the end of a round's faults until all input was worked off
}

func newStory(out io.Writer) *story {
	return &story{out: out, run: time.Now(), met: map[string]int{}, missed: map[string]int{}, ends: map[string]int{}}
}

func (s *story) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(fmt.Sprintf(format, args...))
}

// add adds a line; mu is held.
func (s *story) add(line string) {
	line = fmt.Sprintf("%8.3f  %s", time.Since(s.run).Seconds(), line)
	s.lines = append(s.lines, line)
	if s.out != nil {
		fmt.Fprintln(s.out, line)
	}
}

// fail notes something that must not be.
func (s *story) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	s.failures = append(s.failures, text)
	s.add("FAILURE: " + text)
}

// failed reports whether anything was noted.
func (s *story) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) > 0
}

// count notes a fault that is over.
func (s *story) count(kind string, met bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if met {
		s.met[kind]++
	} else {
		s.missed[kind]++
	}
}

// compared notes a round that is right.
func (s *story) compared(caughtUp time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	s.slowest = max(s.slowest, caughtUp)
}

// ended notes the end of a process that has a cause.
func (s *story) ended(process, cause string, e end) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[cause]++
	s.add(fmt.Sprintf("%s: ended, %s: %s", process, cause, e))
}

// faults returns how many faults took effect.
func (s *story) faults() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.met {
		n += m
	}
	return n
}

// summary says what was done and how it ended.
func (s *story) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(s.met)) {
		fmt.Fprintf(&b, "  %4d  %s\n", s.met[kind], kind)
		total += s.met[kind]
	}
	fmt.Fprintf(&b, "  %4d  faults that took effect; %d more met nothing\n", total, sum(s.missed))
	for _, cause := range slices.Sorted(maps.Keys(s.ends)) {
		fmt.Fprintf(&b, "  %4d  processes ended: %s\n", s.ends[cause], cause)
	}
	fmt.Fprintf(&b, "  %4d  rounds were right; the slowest had caught up %v after its last fault\n", s.rounds, s.slowest.Round(time.Millisecond))
	for _, f := range s.failures {
		fmt.Fprintf(&b, "FAILURE: %s\n", f)
	}
	return b.String()
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
