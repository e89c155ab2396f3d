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
	"time"
)

// process is a running contender.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
	events chan event // what it says; closed at its end
	ended  chan error // the outcome of Wait, once
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

// begin starts a process.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, events: make(chan event, 256), ended: make(chan error, 1)}
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
	go p.follow(stdout)
	return p, nil
}

// follow hands on what the process says until it ends.
func (p *process) follow(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 0 {
			p.events <- event{time.Now(), words}
		}
	}
	close(p.events)
	p.ended <- p.cmd.Wait()
}

// await waits until the process says a word and returns that; seen, if any, is called with what it says before.
func (p *process) await(ctx context.Context, word string, seen func(event)) (event, error) {
	for {
		select {
		case e, ok := <-p.events:
			switch {
			case !ok:
				return e, p.failure(fmt.Errorf("it ended before it was %s", word))
			case e.words[0] == word:
				return e, nil
			case seen != nil:
				seen(e)
			}
		case <-ctx.Done():
			return event{}, fmt.Errorf("it was not %s in time: %w", word, context.Cause(ctx))
		}
	}
}

// stopPatience is how long an orderly end may take.
const stopPatience = 2 * time.Minute

// stop ends the process in order and returns what it said last.
func (p *process) stop() (last []event, err error) {
	_ = p.stdin.Close()
	late := time.AfterFunc(stopPatience, p.kill)
	defer late.Stop()
	for e := range p.events {
		last = append(last, e)
	}
	err = p.failure(nil)
	if text := strings.TrimSpace(p.stderr.String()); err == nil && text != "" {
		slog.Warn("a run had something to say", "said", text)
	}
	return last, err
}

// kill ends the process at once.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// drop ends the process, whatever became of it.
func (p *process) drop() {
	p.kill()
	for range p.events {
	}
	p.ended <- <-p.ended
}

// failure returns why an ended process failed, or err.
func (p *process) failure(err error) error {
	ended := <-p.ended
	p.ended <- ended
	if err = errors.Join(err, ended); err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.stderr.String()))
}

// cpu is the time that the ended process took.
func (p *process) cpu() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}
