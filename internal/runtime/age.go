package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A compacted changelog keeps a tombstone for delete.retention.ms, and then forgets that there ever was the key. A store that
// was current before that and reads on from its offset would keep what was deleted meanwhile. So a file beside a store says
// when its content was last known to be current: nothing that it lacks is older. What counts is
//
//   - for a task that is worked on, when its latest commit was begun that succeeded: nobody else was writing then;
//   - where a changelog is read, when a batch came with which the log was at its end;
//   - for a store that begins empty, when it does: what it reads was there by then.
const currentSuffix = ".current"

// noteCurrent notes since when the data on disk may lack something. That it cannot be written is no reason to stop: then
// they count as older than they are.
func (w *Worker) noteCurrent(s *openStore, at time.Time) {
	if _, ages := w.cfg.DeleteRetention[s.changelog.Topic]; !ages || at.IsZero() || !w.cfg.Opener.Durable() {
		return
	}
	path := filepath.Join(s.dir, s.local+currentSuffix)
	if err := os.WriteFile(path+".new", []byte(at.UTC().Format(time.RFC3339Nano)+"\n"), 0o644); err == nil {
		_ = os.Rename(path+".new", path)
	}
}

// lastCurrent returns when the data on disk were last known to be current, the zero time if that is not known.
func lastCurrent(dir, name string) time.Time {
	text, err := os.ReadFile(filepath.Join(dir, name+currentSuffix))
	if err != nil {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	return at
}

// outlived reports whether the changelog may have forgotten deletions that a store which holds it up to an offset has not
// seen. The last offset of a log is never compacted away: if it is all that the store lacks, or a marker, nothing is.
func (w *Worker) outlived(dir, name string, c Changelog, held int64, now time.Time) bool {
	retention, ages := w.cfg.DeleteRetention[c.Topic]
	if !ages || c.End-held <= 1 {
		return false
	}
	at := lastCurrent(dir, name)
	if now.Sub(at) <= retention {
		return false
	}
	last := "unknown"
	if !at.IsZero() {
		last = now.Sub(at).Round(time.Second).String() + " ago"
	}
	w.cfg.Logger.Warn("store was last current longer ago than its changelog keeps deletions: rebuilding it from the beginning",
		"store", c.Store, "changelog", c.TopicPartition.String(), "last current", last, "delete.retention.ms", retention.Milliseconds(), "held", held, "end", c.End)
	return true
}

// freshAs notes that what the layers and the restore of a store hold was current at a time.
func (s *openStore) freshAs(at time.Time) {
	if at.After(s.current) {
		s.current = at
	}
}
