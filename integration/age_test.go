package integration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
)

// A key is deleted while a process is away, and its changelog forgets the deletion: the key does not come back with the
// process's file. The log is compacted for real, which only the embedded broker does when asked.
func TestDeletionsThatTheChangelogForgotStayDeletions(t *testing.T) {
	t.Parallel()
	broker := brokertest.Embedded(t)
	cfg := config(t)
	cfg.Brokers = broker.Addrs()
	log := cfg.ApplicationID + "-ledger-changelog"
	for topic, settings := range map[string]map[string]string{"in": nil, "out": nil, log: {"cleanup.policy": "compact", "delete.retention.ms": "0"}} {
		brokertest.CreateTopic(t, cfg.Brokers, topic, 1, settings)
	}
	ledger := func(dir string, records ...brokertest.Record) (*instance, millrace.Restored) {
		cfg.StateDir = dir
		app := start(t, keeping(t, "in", "out"), cfg)
		brokertest.Produce(t, cfg.Brokers, "in", records...)
		app.drain()
		r := app.restores(1)[0]
		app.stop()
		return app, r
	}
	old := t.TempDir()
	ledger(old, brokertest.KV("first", "put=1"), brokertest.KV("ghost", "put=1"), brokertest.KV("alive", "put=1"))
	ledger(t.TempDir(), brokertest.KV("ghost", "del"), brokertest.KV("alive", "put=2"))
	ledger(t.TempDir(), brokertest.KV("alive", "put=3"))
	broker.Cluster().Compact()
	for _, r := range settled(t, cfg.Brokers, log) {
		if string(r.Key) == "ghost" {
			t.Fatalf("the changelog still holds %q", r.Key)
		}
	}
	again, r := ledger(old, brokertest.KV("ghost", "get"), brokertest.KV("alive", "get"))
	if r.From != 0 {
		t.Errorf("restored %+v, want all of it", r)
	}
	var got []string
	for _, r := range settled(t, cfg.Brokers, "out") {
		got = append(got, string(r.Key)+"="+printable(r.Value))
	}
	if want := []string{"ghost=null", "alive=3"}; !slices.Equal(got, want) {
		t.Errorf("the store holds %q, want %q", got, want)
	}
	if n := again.log.count("level=WARN", "rebuilding it from the beginning", "store=ledger", log, "delete.retention.ms=0"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// What counts is when the file was last known to be current, and that its changelog has gone on since.
func TestAgeOfAFile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		away    time.Duration
		unknown bool // since when the file may lack something
		goesOn  bool // the changelog
		rebuilt bool
	}{
		"young":              {away: 30 * time.Minute, goesOn: true},
		"old":                {away: 2 * time.Hour, goesOn: true, rebuilt: true},
		"old and up to date": {away: 1000 * time.Hour},
		"unknown":            {unknown: true, goesOn: true, rebuilt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, out := brokertest.Topic(t, "in", 1), brokertest.Topic(t, "out", 1)
			cfg := config(t)
			brokertest.CreateTopic(t, cfg.Brokers, cfg.ApplicationID+"-ledger-changelog", 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "3600000"})
			run := func(dir, value string) millrace.Restored {
				cfg.StateDir = dir
				app := start(t, keeping(t, in, out), cfg)
				send(t, in, "k", value)
				app.drain()
				r := app.restores(1)[0]
				app.stop()
				return r
			}
			dir := t.TempDir()
			run(dir, "put=1")
			path := filepath.Join(dir, cfg.ApplicationID, "0_0", "ledger.current")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if at, err := time.Parse("2006-01-02T15:04:05.999999999Z\n", string(text)); err != nil || time.Since(at) > time.Hour || time.Since(at) < 0 {
				t.Fatalf("current at %q, %v", text, err)
			}
			text = []byte(time.Now().Add(-test.away).UTC().Format(time.RFC3339))
			if test.unknown {
				text = nil
			}
			if test.goesOn {
				run(t.TempDir(), "put=2")
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if r := run(dir, "get"); (r.From == 0) != test.rebuilt {
				t.Errorf("restored %+v, rebuilt: want %t", r, test.rebuilt)
			}
			want := map[bool]string{false: "k=1", true: "k=2"}[test.goesOn]
			if got := show(t, out); !slices.Equal(got, []string{want}) {
				t.Errorf("the store answers %q, want %q", got, want)
			}
		})
	}
}
