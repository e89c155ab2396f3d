package kafka

import (
	"log/slog"
	"sync"
	"time"
)

// sayAgain is how often a trouble that lasts is logged.
const sayAgain = 10 * time.Second

// trouble is something that fails again and again until it is over, for one or for many. It is logged when it has lasted
// for after, then at intervals with how long it has lasted, and once when it is over for all.
type trouble struct {
	log   *slog.Logger
	what  string        // said while it lasts
	over  string        // said when it is over
	after time.Duration // not worth a word before

	mu    sync.Mutex
	whom  map[any]struct{}
	since time.Time
	said  time.Time // zero while nothing was said
}

// has notes that somebody has the trouble, or still has it.
func (t *trouble) has(who any, err error, attrs ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if len(t.whom) == 0 {
		t.whom, t.since, t.said = map[any]struct{}{}, now, time.Time{}
	}
	t.whom[who] = struct{}{}
	lasts := now.Sub(t.since)
	if lasts < t.after || !t.said.IsZero() && now.Sub(t.said) < sayAgain {
		return
	}
	t.said = now
	t.log.Warn(t.what, append(attrs, "error", err, "for", lasts.Round(time.Millisecond))...)
}

// left notes that it is over for somebody.
func (t *trouble) left(who any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drop(who) && !t.said.IsZero() {
		t.log.Info(t.over, "lasted", time.Since(t.since).Round(time.Millisecond))
	}
}

// forget leaves somebody out who is not interested any more.
func (t *trouble) forget(who any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(who)
}

// drop reports whether that was the last.
func (t *trouble) drop(who any) bool {
	if _, had := t.whom[who]; !had {
		return false
	}
	delete(t.whom, who)
	return len(t.whom) == 0
}
