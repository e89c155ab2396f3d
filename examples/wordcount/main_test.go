package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// count runs the command on a file as a newcomer does, with further flags, and returns what it prints.
func count(t *testing.T, lines string, flags ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := parse(append([]string{"-file", file}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, o, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCountsAFile(t *testing.T) {
	t.Parallel()
	lines := "The quick brown fox\n\njumps over the lazy dog; the dog\tsleeps. ÄPFEL äpfel x2"
	want := "the\t3\ndog\t2\näpfel\t2\nbrown\t1\nfox\t1\njumps\t1\nlazy\t1\nover\t1\nquick\t1\nsleeps\t1\nx2\t1\n"
	for _, flags := range [][]string{{"-store", "bolt"}, {"-store", "memory", "-workers", "1"}, {"-guarantee", "at_least_once"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			if got := count(t, lines, flags...); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	}
}

// With a state directory of its own, the counts go on where the run before ended.
func TestCountsGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := count(t, "a b a", "-state-dir", dir); got != "a\t2\nb\t1\n" {
		t.Fatalf("first run: %q", got)
	}
	if got := count(t, "b\nc\nb", "-state-dir", dir); got != "b\t3\na\t2\nc\t1\n" {
		t.Fatalf("second run: %q", got)
	}
}

func TestEmptyFile(t *testing.T) {
	t.Parallel()
	if got := count(t, ""); got != "" {
		t.Fatalf("got %q", got)
	}
}

// What cannot be reached is an error, and leaves nothing behind.
func TestNoBroker(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, brokers := range []string{"127.0.0.1:1", ","} {
		o, err := parse([]string{"-file", "main_test.go", "-brokers", brokers})
		if err != nil {
			t.Fatal(err)
		}
		if err := run(context.Background(), o, &bytes.Buffer{}); err == nil {
			t.Errorf("-brokers %s: no error", brokers)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBadFlags(t *testing.T) {
	for _, flags := range [][]string{{"-store", "paper"}, {"-guarantee", "maybe"}, {"-workers", "-1"}, {"-file", "no such file"}} {
		o, err := parse(flags)
		if err != nil {
			t.Fatal(err)
		}
		if o.file == "" {
			o.file = "unused"
		}
		if err := run(context.Background(), o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), flags[1]) {
			t.Errorf("%v: got %v", flags, err)
		}
	}
	for _, args := range [][]string{{"-no-such-flag"}, {"surplus"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
