package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is a running contender.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
	ended  chan struct{} // closed at its end
	err    error         // of the end

	mu      sync.Mutex
	said    []event
	more    chan struct{} // closed when it says more, and replaced
	dropped bool          // it is to end
}

// event is a line that a process says, and when.
type event struct {
	at    time.Time
	words []string
}

// number returns the event's last word as a number.
func (e event) number() float64 {
	n, _ := strconv.ParseFloat(e.words[len(e.words)-1], 64) // the programs are ours
	return n
}

// partition returns that of a changelog which the event is about.
func (e event) partition() int {
	n, _ := strconv.Atoi(e.words[1][strings.LastIndexByte(e.words[1], '-')+1:])
	return n
}

// begin starts a process. fail is called if it ends when nobody wants it to.
func begin(cmd *exec.Cmd, fail context.CancelCauseFunc) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{}), more: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, cmd.Stderr = stdin, &p.stderr
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.follow(stdout, fail)
	return p, nil
}

// follow notes what the process says until it ends.
func (p *process) follow(stdout io.Reader, fail context.CancelCauseFunc) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 0 {
			p.mu.Lock()
			p.said = append(p.said, event{time.Now(), words})
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}
	p.err = p.cmd.Wait()
	text := strings.TrimSpace(p.stderr.String())
	if p.err != nil {
		p.err = fmt.Errorf("%w: %s", p.err, text)
	} else if text != "" {
		slog.Warn("a run had something to say", "said", text)
	}
	close(p.ended)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dropped {
		fail(errors.Join(errors.New("the process ended early"), p.err))
	}
}

// find returns what the process has said that begins with a word.
func (p *process) find(word string) (found []event, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.said {
		if e.words[0] == word {
			found = append(found, e)
		}
	}
	return found, p.more
}

// await waits until the process has said a word so many times, and returns all that begin with it.
func (p *process) await(ctx context.Context, word string, times int) ([]event, error) {
	for {
		found, more := p.find(word)
		if len(found) >= times {
			return found, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, fmt.Errorf("the process did not say %q %d times: %w", word, times, context.Cause(ctx))
		}
	}
}

// stopPatience is how long an orderly end may take.
const stopPatience = 2 * time.Minute

// stop ends the process in order.
func (p *process) stop() error {
	p.release()
	_ = p.stdin.Close()
	late := time.AfterFunc(stopPatience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	<-p.ended
	return p.err
}

// drop kills the process, if it is still there, and returns when it is gone.
func (p *process) drop() {
	p.release()
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped = true
}

// cpu is the time that the ended process took.
func (p *process) cpu() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}
