package example

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/millrace-streams/millrace"
)

// progress shows on one line of a terminal how far the restores of an application are, all stores together. It is for
// Config.OnRestoring.
type progress struct {
	out   io.Writer
	quiet time.Duration // what is restored sooner is not worth a line
	now   func() time.Time

	mu    sync.Mutex
	under map[string]millrace.Restoring
	since time.Time
	shown bool
	done  int64 // records of stores that are back
}

// restoreProgress returns a listener that shows restores on standard error, nil if that is no terminal.
func restoreProgress() func(millrace.Restoring) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	p := &progress{out: os.Stderr, quiet: 500 * time.Millisecond, now: time.Now}
	return p.tell
}

// clearLine goes back to the beginning of the line and erases it.
const clearLine = "\r\x1b[K"

func (p *progress) tell(r millrace.Restoring) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.under) == 0 {
		p.under, p.since, p.done = map[string]millrace.Restoring{}, p.now(), 0
	}
	store := fmt.Sprint(r.Task, " ", r.Store)
	if p.under[store] = r; r.Remaining() == 0 {
		p.done += r.Records
		delete(p.under, store)
	}
	switch {
	case len(p.under) == 0 && p.shown:
		fmt.Fprintf(p.out, "%srestored: %d records\n", clearLine, p.done)
		p.shown = false
	case len(p.under) > 0 && p.now().Sub(p.since) >= p.quiet:
		records, remaining := p.done, int64(0)
		for _, u := range p.under {
			records += u.Records
			remaining += u.Remaining()
		}
		fmt.Fprintf(p.out, "%srestoring: %d records, at most %d to come", clearLine, records, remaining)
		p.shown = true
	}
}
