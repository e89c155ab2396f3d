package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

// crasher makes a function of the user's misbehave, when the parent says so.
type crasher struct {
	tell func(string)

	mu     sync.Mutex
	how    string // "" when not armed
	number int    // of calls to go, or of milliseconds to sleep
}

// Ways to misbehave, and the line by which a process says that it does.
const (
	crashPanic  = "panic"
	crashGoexit = "goexit"
	crashSleep  = "sleep"
	crashing    = "crashing"
)

// panicText is what a panic on purpose says.
const panicText = "chaos: a panic on purpose"

// obey reads commands, "<how> <number>", until the input ends.
func (c *crasher) obey(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var how string
		var number int
		if _, err := fmt.Sscan(lines.Text(), &how, &number); err == nil {
			c.mu.Lock()
			c.how, c.number = how, number
			c.mu.Unlock()
		}
	}
}

// step is called in every function of the user's.
func (c *crasher) step() {
	how, number := c.due()
	if how == "" {
		return
	}
	c.tell(crashing)
	switch how {
	case crashSleep:
		time.Sleep(time.Duration(number) * time.Millisecond)
	case crashGoexit:
		runtime.Goexit()
	default:
		panic(panicText)
	}
}

// due counts a call, and returns what to do in it.
func (c *crasher) due() (how string, number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how == "" {
		return "", 0
	}
	if c.how != crashSleep && c.number > 0 {
		c.number--
		return "", 0
	}
	how, c.how = c.how, ""
	return how, c.number
}

// oneLine returns a text of several lines as one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
