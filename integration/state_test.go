package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

// storeFile is where the store of a counting task is.
func storeFile(cfg millrace.Config, task string) string {
	return filepath.Join(cfg.StateDir, cfg.ApplicationID, task, "counts.db")
}

// flushedTo waits until a store file holds a key.
func flushedTo(app *instance, path, key string) {
	app.t.Helper()
	app.eventually(func() (bool, string) {
		data, err := os.ReadFile(path)
		return err == nil && bytes.Contains(data, []byte(key)), path + " does not hold " + key
	})
}

// spoil overwrites all pages of a file but those that say what it is.
func spoil(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	skip := int64(2 * os.Getpagesize())
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, int(info.Size()-skip)), skip); err != nil {
		t.Fatal(err)
	}
}

// A store file that is damaged while the application runs is put aside and rebuilt from the changelog, with one warning.
// What is not its task's business goes on, and every count is exact.
func TestDamageInMidRunIsRebuilt(t *testing.T) {
	t.Parallel()
	in, out := brokertest.Topic(t, "in", 2), brokertest.Topic(t, "out", 2)
	cfg := config(t)
	cfg.FlushInterval = time.Millisecond
	app := start(t, counting(t, in, out), cfg)
	app.restores(2)
	brokertest.Produce(t, cfg.Brokers, in, numbered(4000, 400)...)
	app.drain()
	path := storeFile(cfg, "0_0")
	flushedTo(app, path, "k2")
	spoil(t, path)
	brokertest.Produce(t, cfg.Brokers, in, numbered(4000, 400)...)
	again := app.restores(3)
	app.drain()
	tasks := map[int32]int{}
	for _, r := range again {
		tasks[r.Task.Partition]++
		if r.Task.Partition == 0 && tasks[0] == 2 && r.From != 0 {
			t.Errorf("restored %+v, want all of it", r)
		}
	}
	if tasks[0] != 2 || tasks[1] != 1 {
		t.Errorf("restored %v, want the first task twice, the other once", again)
	}
	if told := app.log.with("level=WARN"); len(told) != 1 {
		t.Errorf("warned %d times: %q", len(told), told)
	}
	if _, err := os.Stat(path + ".corrupt"); err != nil {
		t.Error(err)
	}
	app.stop()
	exactlyCounted(t, out, numberedCounts(8000, 400))
}

// Field report 48, as a whole application: a file that was damaged while nobody had it open.
func TestFieldReport48DamagedFileIsRebuilt(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	for name, damage := range map[string]func(file []byte) []byte{
		"a value": func(file []byte) []byte {
			file[bytes.LastIndex(file, []byte("k50"))+20] ^= 1
			return file
		},
		"both meta pages": func(file []byte) []byte {
			copy(file, bytes.Repeat([]byte{0xA5}, 2*page))
			return file
		},
		"cut": func(file []byte) []byte { return file[:3*page] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damagedFileIsRebuilt(t, damage)
		})
	}
}

func damagedFileIsRebuilt(t *testing.T, damage func(file []byte) []byte) {
	in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
	cfg := config(t)
	first := start(t, counting(t, in, out), cfg)
	brokertest.Produce(t, cfg.Brokers, in, numbered(1000, 100)...)
	first.drain()
	first.stop()
	path := storeFile(cfg, "0_0")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(data), 0o600); err != nil {
		t.Fatal(err)
	}
	again := start(t, counting(t, in, out), cfg)
	if r := again.restores(1)[0]; r.From != 0 || r.Records == 0 {
		t.Errorf("restored %+v, want all of it", r)
	}
	if told := again.log.with("store is damaged"); len(told) != 1 {
		t.Errorf("warned %d times: %q", len(told), told)
	}
	if _, err := os.Stat(path + ".corrupt"); err != nil {
		t.Error(err)
	}
	brokertest.Produce(t, cfg.Brokers, in, numbered(1000, 100)...)
	again.drain()
	again.stop()
	exactlyCounted(t, out, numberedCounts(2000, 100))
}
