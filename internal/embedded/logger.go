package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
)

// logger hands kfake's messages to slog. A write that failed shows up only here, so the first such message is kept, and
// lost is called with it.
type logger struct {
	to   *slog.Logger
	lost func(error)

	once sync.Once
	err  error
}

// Logf implements kfake.Logger.
func (l *logger) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError || level == kfake.LogLevelWarn && strings.HasPrefix(format, "persist ") {
		l.once.Do(func() {
			l.err = fmt.Errorf(format, args...)
			l.lost(l.err)
		})
	}
	if lv := slogLevel(level, format); l.to.Enabled(context.Background(), lv) {
		l.to.Log(context.Background(), lv, "embedded: "+fmt.Sprintf(format, args...))
	}
}

// firstError returns the first message of a failed write. After it, further ones are not kept.
func (l *logger) firstError() error {
	l.once.Do(func() {})
	return l.err
}

// slogLevel maps kfake's levels. Its info names every request, and its warnings every commit that takes more than 5 ms, as on
// a busy machine: both are debugging to us.
func slogLevel(level kfake.LogLevel, format string) slog.Level {
	switch {
	case level == kfake.LogLevelError:
		return slog.LevelError
	case level == kfake.LogLevelWarn && !strings.HasPrefix(format, "txn: EndTxn slow "):
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
