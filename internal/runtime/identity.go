package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A file beside a store names the topic that its content comes from. A changelog that was deleted and created again has
// another identity, though it has the same name and may have grown beyond the offset that the store holds.
const identitySuffix = ".topic"

// identify puts the store's data aside if it comes from another topic, and notes which one it comes from from now on. The
// store must not be open.
func (w *Worker) identify(dir, name string, c Changelog) error {
	if c.ID == "" || !w.cfg.Opener.Durable() {
		return nil
	}
	path := filepath.Join(dir, name+identitySuffix)
	noted, err := os.ReadFile(path)
	switch was := strings.TrimSpace(string(noted)); {
	case err == nil && was == c.ID:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("runtime: %w", err)
	case err == nil:
		aside, err := w.cfg.Opener.SetAside(dir, name)
		if err != nil {
			return err
		}
		w.cfg.Logger.Warn("store comes from a changelog that was deleted and created again: rebuilding it",
			"store", c.Store, "set aside", aside, "changelog", c.TopicPartition.String(), "was", was, "is", c.ID)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	if err := os.WriteFile(path, []byte(c.ID+"\n"), 0o644); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	return nil
}

// truncated returns an error if the changelog has lost what the store holds, unless that is to be let pass.
func (w *Worker) truncated(t *task, c Changelog, held int64) error {
	if held <= c.End || w.cfg.LostState || t.role == Standby { // whoever works on the task says so
		return nil
	}
	return t.lostState(c, held)
}

// lostState says that a changelog does not hold what its store holds.
func (t *task) lostState(c Changelog, held int64) *LostStateError {
	e := &LostStateError{Task: t.id, Store: c.Store, Changelog: c.TopicPartition, Start: c.Start, End: c.End, Held: held}
	for _, in := range t.lease.Inputs {
		e.Committed = append(e.Committed, t.positions[in.TopicPartition])
	}
	return e
}
