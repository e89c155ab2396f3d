package main

import (
	"runtime"
	"strings"
)

// panicText is what a panic on purpose says.
const panicText = "chaos: a panic on purpose"

// crash ends the goroutine of the caller.
func crash(how string) {
	if how == crashGoexit {
		runtime.Goexit()
	}
	panic(panicText)
}

// oneLine returns a text of several lines as one.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
