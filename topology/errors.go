package topology

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// BuildError is one mistake in the declaration of a topology.
type BuildError struct {
	File string // of the call that made the mistake, as the compiler recorded it
	Line int
	Node string // the node that the call declared; empty if none
	Err  error
}

// Error is one line: file, line, node and what is wrong.
func (e *BuildError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("topology: %s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("topology: %s:%d: node %q: %v", e.File, e.Line, e.Node, e.Err)
}

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// site is a place in the application's source.
type site struct {
	file string
	line int
}

func (s site) String() string { return fmt.Sprintf("%s:%d", s.file, s.line) }

// inPackage begins the names of this package's functions, and of no other package's.
var inPackage = reflect.TypeFor[Builder]().PkgPath() + "."

// caller returns the place of the innermost call from outside of this package.
func caller() site {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, inPackage) || !more {
			return site{f.File, f.Line}
		}
	}
}

// maxName is the length of the longest topic name that Kafka takes.
const maxName = 249

var (
	errEmptyName   = errors.New("the name is empty")
	errIllegalName = errors.New("only a-z, A-Z, 0-9, '.', '_' and '-' are allowed in a name")
	errDots        = errors.New(`"." and ".." are not allowed as names`)
)

// checkName checks Kafka's rules for the names of topics, which stores, repartition topics and nodes share.
func checkName(name string) error {
	switch {
	case name == "":
		return errEmptyName
	case name == "." || name == "..":
		return errDots
	case len(name) > maxName:
		return fmt.Errorf("the name has %d characters, at most %d are allowed", len(name), maxName)
	}
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return errIllegalName
		}
	}
	return nil
}
