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
	number int
	folder string // <folder>/state, <folder>/log-<life>.txt, <folder>/disk
	proxy  *wire.Proxy
	assign assignment
	story  *story

	mu      sync.Mutex
	wanted  bool
	running *life         // nil while there is none
	lives   int           // so far
	pause   time.Duration // before the next start
	meddle  func() error  // done to the folder before the next start
	changed chan struct{} // closed and replaced when any of these changes
}

// life is one process, from its start to its end.
type life struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string        // path
	said  chan string   // what it told, closed at its end
	heard chan struct{} // closed when it has told all
	over  chan struct{} // closed when it has been waited for

	mu   sync.Mutex
	doom []string // ends that have a cause: see ends
}

// Causes of an end, and how one is recognised.
const (
	causeKilled  = "killed"
	causeStopped = "stopped"
	causePanic   = "panic"
	causeGoexit  = "goexit"
	causeDisk    = "disk"
)

func newSlot(number int, folder string, proxy *wire.Proxy, assign assignment, s *story) *slot {
	assign.Broker, assign.StateDir, assign.DiskFile = proxy.Addr(), filepath.Join(folder, "state"), filepath.Join(folder, "disk")
	return &slot{number: number, folder: folder, proxy: proxy, assign: assign, story: s, changed: make(chan struct{})}
}

// change changes the slot and wakes who waits for that.
func (s *slot) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}

// want says whether the slot is to have a process.
func (s *slot) want(wanted bool) { s.change(func() { s.wanted = wanted }) }

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
		l, err := s.start()
		if err != nil {
			s.story.fail("process %d cannot be started: %v", s.number, err)
			return
		}
		s.ended(l, l.wait())
	}
}

// start begins a life.
func (s *slot) start() (*life, error) {
	s.mu.Lock()
	meddle, number := s.meddle, s.lives
	s.meddle = nil
	s.mu.Unlock()
	if meddle != nil {
		if err := meddle(); err != nil {
			return nil, err
		}
	}
	l, err := spawn(s.assign, filepath.Join(s.folder, fmt.Sprintf("log-%d.txt", number)))
	if err != nil {
		return nil, err
	}
	s.change(func() { s.running, s.lives = l, s.lives+1 })
	s.story.tell("process %d: life %d begins", s.number, number)
	return l, nil
}

// ended notes how a life ended.
func (s *slot) ended(l *life, end end) {
	s.change(func() { s.running = nil })
	cause, ok := end.cause(l.causes())
	switch {
	case !ok:
		s.story.fail("process %d ended by itself: %s (%s)", s.number, end, l.log)
	default:
		s.story.ended(s.number, cause, end)
	}
	if cause == causeStopped && ok {
		_ = os.Remove(l.log)
	}
}

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
	l := &life{cmd: exec.Command(self), log: log, said: make(chan string, 1000), heard: make(chan struct{}), over: make(chan struct{})}
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
	defer close(l.said)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		select {
		case l.said <- lines.Text():
		default: // nobody listens
		}
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
		select {
		case line, open := <-l.said:
			if !open {
				return false
			}
			if strings.HasPrefix(line, prefix) {
				return true
			}
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
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
