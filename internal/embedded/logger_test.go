package embedded

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// A commit that takes more than 5 ms is nothing to warn of: it says that the machine is busy.
func TestSlowCommitsAreNoWarning(t *testing.T) {
	var out bytes.Buffer
	l := &logger{to: slog.New(slog.NewTextHandler(&out, nil)), lost: func(error) {}}
	l.Logf(kfake.LogLevelWarn, "txn: EndTxn slow pid=%d", 1)
	if out.Len() > 0 {
		t.Errorf("logged: %s", out.String())
	}
	l.Logf(kfake.LogLevelWarn, "txn: timed out pid=%d", 1)
	if out.Len() == 0 {
		t.Error("a warning was not logged")
	}
}
