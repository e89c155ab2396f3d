package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// slot is the place of one process of the application: what an orchestrator keeps running. When the process ends, it is
// started again, as long as it is wanted.
type slot struct {
	name   string
	folder string // <folder>/state, <folder>/log-<life>.txt, <folder>/disk
	proxy  *wire.Proxy
	assign assignment
	story  *story

	mu      sync.Mutex
	wanted  bool
	begins  bool          // a process is being started
	running *life         // nil while there is none
	lives   int           // so far
	pause   time.Duration // before the next start
	meddle  func()        // called before the next start
	excuses []string      // causes for which any life may end at the moment
	changed chan struct{} // closed and replaced when any of these changes
}

// life is one process, from its start to its end.
type life struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string        // path
	heard chan struct{} // closed when it has told all
	over  chan struct{} // closed when it has been waited for

	mu   sync.Mutex
	doom []string      // causes for which it may end
	said []string      // lines that it told and nobody has heard
	more chan struct{} // closed and replaced when it tells something
}

// Causes of an end, and how one is recognised.
const (
	causeKilled  = "killed"
	causeStopped = "stopped"
	causePanic   = "panic"
	causeGoexit  = "goexit"
	causeDisk    = "disk"
)

func newSlot(name, folder string, proxy *wire.Proxy, assign assignment, s *story) *slot {
	assign.Broker, assign.StateDir, assign.DiskFile = proxy.Addr(), filepath.Join(folder, "state"), filepath.Join(folder, "disk")
	return &slot{name: name, folder: folder, proxy: proxy, assign: assign, story: s, changed: make(chan struct{})}
}

// String names the slot.
func (s *slot) String() string { return s.name }

// change changes the slot and wakes who waits for that.
func (s *slot) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}

// excuse lets the slot's processes end for a cause until done is called. The one that runs then may still do so.
func (s *slot) excuse(cause string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.excuses = append(s.excuses, cause)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.excuses = slices.Delete(s.excuses, slices.Index(s.excuses, cause), slices.Index(s.excuses, cause)+1)
		if s.running != nil {
			s.running.dooms(cause)
		}
	}
}

// want says whether the slot is to have a process.
func (s *slot) want(wanted bool) { s.change(func() { s.wanted = wanted }) }

func (s *slot) isWanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// current returns the process that runs, nil if there is none.
func (s *slot) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// await waits until ready returns true for the slot, whose lock is held.
func (s *slot) await(ctx context.Context, ready func() bool) bool {
	for {
		s.mu.Lock()
		ok, changed := ready(), s.changed
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// alive waits for a process that runs. It returns nil if there is none within the time.
func (s *slot) alive(ctx context.Context, within time.Duration) (l *life) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s.await(ctx, func() bool { l = s.running; return l != nil })
	return l
}

// supervise keeps the process running until ctx ends, when there must be none left.
func (s *slot) supervise(ctx context.Context) {
	for s.await(ctx, func() bool { return s.wanted }) {
		s.mu.Lock()
		pause := s.pause
		s.pause = 0
		s.mu.Unlock()
		if !wait(ctx, pause) {
			return
		}
		s.change(func() { s.begins = s.wanted })
		if !s.begins {
			continue
		}
		l, err := s.start()
		if err != nil {
			s.story.fail("%s: cannot be started: %v", s, err)
			return
		}
		s.ended(l, l.wait())
	}
}

// retire wants no process any more, and ends the one there is. It returns an error when that does not end in order.
func (s *slot) retire(ctx context.Context) error {
	s.want(false)
	var l *life
	s.await(ctx, func() bool { l = s.running; return !s.begins })
	if l == nil {
		return nil
	}
	return l.stop(stopWithin)
}

// start begins a life.
func (s *slot) start() (*life, error) {
	s.mu.Lock()
	meddle, number := s.meddle, s.lives
	s.meddle = nil
	s.lives++
	s.mu.Unlock()
	if meddle != nil {
		meddle()
	}
	l, err := spawn(s.assign, filepath.Join(s.folder, fmt.Sprintf("log-%d.txt", number)))
	s.change(func() { s.running, s.begins = l, false })
	if err != nil {
		return nil, err
	}
	s.story.tell("%s: life %d begins", s, number)
	return l, nil
}

// ended notes how a life ended. After an error the next one begins a little later, as orchestrators have it.
func (s *slot) ended(l *life, e end) {
	var doom []string
	s.change(func() {
		s.running, doom = nil, append(l.causes(), s.excuses...)
		if !e.status.Signaled() && e.status.ExitStatus() != 0 {
			s.pause = max(s.pause, restartPause)
		}
	})
	cause, ok := e.cause(doom)
	if !ok {
		s.story.fail("%s: ended by itself: %s (%s)", s, e, l.log)
		return
	}
	s.story.ended(s.name, cause, e)
	if cause == causeStopped {
		_ = os.Remove(l.log)
	}
}

const restartPause = 200 * time.Millisecond

// spawn starts a process.
func spawn(a assignment, log string) (*life, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l := &life{cmd: exec.Command(self), log: log, more: make(chan struct{}), heard: make(chan struct{}), over: make(chan struct{})}
	l.cmd.Env = append(os.Environ(), processVariable+"="+string(text))
	l.cmd.Stderr = file
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		l.stdin, err = l.cmd.StdinPipe()
	}
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go l.listen(out)
	return l, nil
}

func (l *life) listen(out io.Reader) {
	defer close(l.heard)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		l.mu.Lock()
		l.said = append(l.said, lines.Text())
		close(l.more)
		l.more = make(chan struct{})
		l.mu.Unlock()
	}
}

// wait returns how the process ended.
func (l *life) wait() end {
	defer close(l.over)
	<-l.heard // Wait ends the reading
	_ = l.cmd.Wait()
	return end{status: l.cmd.ProcessState.Sys().(syscall.WaitStatus), words: lastWords(l.log)}
}

// hears waits until the process tells a line that begins so.
func (l *life) hears(ctx context.Context, prefix string, within time.Duration) bool {
	late := time.After(within)
	for {
		heard, more := l.take(prefix)
		if heard {
			return true
		}
		select {
		case <-more:
		case <-l.heard:
			heard, _ = l.take(prefix)
			return heard
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// take forgets a line that begins so, and reports whether there was one. more is closed when there are new ones.
func (l *life) take(prefix string) (heard bool, more chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.said, func(line string) bool { return strings.HasPrefix(line, prefix) })
	if i >= 0 {
		l.said = slices.Delete(l.said, i, i+1)
	}
	return i >= 0, l.more
}

// dooms notes that the process may end for this cause from now on.
func (l *life) dooms(cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doom = append(l.doom, cause)
}

func (l *life) causes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.doom)
}

func (l *life) signal(s syscall.Signal) { _ = l.cmd.Process.Signal(s) }

func (l *life) kill() {
	l.dooms(causeKilled)
	l.signal(syscall.SIGKILL)
	<-l.over
}

var errHangs = errors.New("does not end")

// stop ends the process in order.
func (l *life) stop(within time.Duration) error {
	l.dooms(causeStopped)
	l.signal(syscall.SIGTERM)
	select {
	case <-l.over:
		return nil
	case <-time.After(within):
		l.signal(syscall.SIGQUIT) // its log gets the stacks
		<-l.over
		return errHangs
	}
}
