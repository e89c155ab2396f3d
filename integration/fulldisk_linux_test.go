package integration

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// A full disk ends the application with an error that names the file. Nothing that was committed is lost, and nothing is
// half done: with room again it goes on from there.
func TestFullDiskStopsInOrder(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
	cfg := config(t)
	if err := syscall.Mount("none", cfg.StateDir, "tmpfs", 0, "size=4m"); err != nil {
		noSmallDisk(t, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(cfg.StateDir, 0); err != nil {
			t.Error(err)
		}
	})
	cfg.FlushInterval = time.Millisecond
	app := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(2000, 200)...)
	app.drain()
	ballast := filepath.Join(cfg.StateDir, "ballast")
	fill(t, ballast)
	brokertest.Produce(t, cfg.Brokers, in, numbered(40_000, 20_000)...)
	err := app.join()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Run: %v, want ENOSPC", err)
	}
	names(t, err, cfg.StateDir, "counts.db", "cannot be written")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", cfg.StateDir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	again := start(t, counting(t, in, out), cfg)
	again.drain()
	again.stop()
	want := numberedCounts(40_000, 20_000)
	for key, n := range numberedCounts(2000, 200) {
		want[key] += n
	}
	exactlyCounted(t, out, want)
}

// noSmallDisk ends a test that needs a file system of its own where none can be mounted, as without root. Where one is known
// to be possible, as MILLRACE_SMALL_DISK=1 says, that is a failure.
func noSmallDisk(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("MILLRACE_SMALL_DISK") == "1" {
		t.Fatalf("no small file system can be mounted: %v", err)
	}
	t.Skipf("NOT RUN: no small file system can be mounted: %v", err)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			return
		}
	}
}
