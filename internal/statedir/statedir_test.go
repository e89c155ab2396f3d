package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProcessIDOutlivesRestarts(t *testing.T) {
	root := t.TempDir()
	first := open(t, root)
	id := first.ProcessID
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, root); again.ProcessID != id {
		t.Fatalf("process id %s became %s", id, again.ProcessID)
	}
}

func TestDamagedProcessIDIsReplaced(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "app", "process-id")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("cut sho"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := open(t, root); len(d.ProcessID) != 36 {
		t.Fatalf("process id %q", d.ProcessID)
	}
}

// Field report 49: the second process is told which path is held, at once.
func TestFieldReport49SecondProcessIsRefused(t *testing.T) {
	root := t.TempDir()
	open(t, root)
	_, err := Open(root, "app")
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), root) {
		t.Fatalf("got %v", err)
	}
	if _, err := Open(root, "other"); err != nil {
		t.Fatalf("another application: %v", err)
	}
}

func open(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := Open(root, "app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestClearKeepsTheProcess(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	task := filepath.Join(root, "app", "0_0")
	if err := errors.Join(os.MkdirAll(task, 0o755), os.WriteFile(filepath.Join(task, "s.db"), nil, 0o644), d.Clear()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(task); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store is still there: %v", err)
	}
	was := d.ProcessID
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, root); again.ProcessID != was {
		t.Errorf("process %s became %s", was, again.ProcessID)
	}
}
