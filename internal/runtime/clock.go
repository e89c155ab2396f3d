package runtime

import "time"

// NextPunctuation returns when the next wall-clock punctuation of a running task is due, false if none is scheduled.
func (w *Worker) NextPunctuation() (next time.Time, ok bool) {
	for _, t := range w.tasks {
		if !t.running() {
			continue
		}
		if ms, scheduled := t.work.NextPunctuation(); scheduled {
			if at := time.UnixMilli(ms); !ok || at.Before(next) {
				next, ok = at, true
			}
		}
	}
	return next, ok
}
