package bolt_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// smallDisk mounts a file system of the given size. Only root can: without one the test
// is skipped, or fails where MILLRACE_SMALL_DISK=1 says that one is possible.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("MILLRACE_SMALL_DISK") == "1" {
			t.Fatalf("no file system of %s can be mounted: %v", size, err)
		}
		t.Skipf("NOT RUN: no file system of %s can be mounted: %v", size, err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	return dir
}

// A disk that is full leaves the store as it was, or, of a batch in parts, with the
// rest in reach: with room again, everything goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		o    bolt.Options
		left int64
		half bool // applied
	}{
		"one transaction": {bolt.Options{}, 192 << 10, false},
		"before a part":   {bolt.Options{TxBytes: 256 << 10}, 192 << 10, false},
		"between parts":   {bolt.Options{TxBytes: 256 << 10}, 5 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := test.o
			dir := smallDisk(t, "12m")
			b, err := bolt.Opener{Options: o}.Open(dir, "s")
			must(t, err)
			t.Cleanup(func() { must(t, b.Close()) })
			must(t, b.Apply(batch(0, 2000, "before", 1)))
			ballast := filepath.Join(dir, "ballast")
			filled(t, ballast, test.left)
			value := strings.Repeat("after", 400)
			for range 2 {
				if err := b.Apply(batch(0, 2000, value, 2)); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), dir) {
					t.Fatalf("got %v, want ENOSPC that names the file", err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "s.db.redo")); (err == nil) != test.half {
				t.Fatalf("half applied: %v", err)
			}
			if _, _, ok, err := b.Get(nil, []byte("k0001999")); !ok || err != nil {
				t.Fatalf("get: %v, %v", ok, err)
			}
			if offset, _ := b.Offset(); offset != 1 {
				t.Fatalf("offset %d", offset)
			}
			if test.half {
				must(t, b.Close())
				if _, err := (bolt.Opener{Options: o}).Open(dir, "s"); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrCorrupt) {
					t.Fatalf("open: got %v, want ENOSPC", err)
				}
			}
			must(t, os.Remove(ballast))
			if test.half {
				b = open(t, bolt.Opener{Options: o}, dir)
			}
			must(t, b.Apply(batch(2000, 2001, "last", 3)))
			want := map[string]string{}
			pairs, err := b.Scan(nil, store.Range{}, 1<<20)
			must(t, err)
			for _, p := range pairs {
				want[string(p.Key)] = string(p.Value)
			}
			must(t, b.Close())
			again := open(t, bolt.Opener{Options: o}, dir)
			holds(t, again, 3, want)
			if first := want["k0000000"]; len(want) != 2001 || first != want["k0001999"] {
				t.Errorf("%d entries, the first is %.10q, the last %.10q", len(want), first, want["k0001999"])
			}
			must(t, again.Apply(batch(0, 2000, value, 4)))
			all := maps.Collect(func(yield func(string, string) bool) {
				for k := range want {
					if k == "k0002000" && !yield(k, "last") || k != "k0002000" && !yield(k, value) {
						return
					}
				}
			})
			holds(t, again, 4, all)
		})
	}
}

// A disk that becomes full in the middle of a first load leaves a file that is as good as empty, at once and after it is
// opened again: with room, everything goes on.
func TestFullDiskInAFirstLoad(t *testing.T) {
	t.Parallel()
	for _, reopened := range []bool{false, true} {
		t.Run(fmt.Sprintf("reopened=%t", reopened), func(t *testing.T) {
			t.Parallel()
			const n = 10_000 // 4 MB
			value := strings.Repeat("v", 400)
			opener := bolt.Opener{Options: bolt.Options{TxBytes: 256 << 10}}
			dir := smallDisk(t, "12m")
			b := open(t, opener, dir)
			ballast := filepath.Join(dir, "ballast")
			filled(t, ballast, 2<<20)
			for range 2 {
				err := b.Load(rows(n, -1, value), 7)
				if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), dir) {
					t.Fatalf("got %v, want ENOSPC that names the file", err)
				}
				if at, ok := b.Offset(); ok {
					t.Fatalf("a file that was loaded in part has the offset %d", at)
				}
			}
			if reopened {
				must(t, b.Close())
			}
			must(t, os.Remove(ballast))
			if reopened {
				b = open(t, opener, dir)
				holds(t, b, 0, nil)
			}
			must(t, b.Load(rows(n, -1, value), 7))
			must(t, b.Close())
			want := map[string]string{}
			for row := range rows(n, -1, value) {
				want[string(row.Key)] = string(row.Value)
			}
			holds(t, open(t, opener, dir), 7, want)
		})
	}
}

// filled writes a file until the disk is full but for some bytes.
func filled(t *testing.T, path string, left int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	block := make([]byte, 64<<10)
	for size := int64(0); ; size += int64(len(block)) {
		if _, err := f.WriteAt(block, size); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			must(t, f.Truncate(max(0, size-left)))
			break
		}
	}
	must(t, f.Close())
}
