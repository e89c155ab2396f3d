package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	brokerScript = "scripts/kafka/broker.sh"
	brokerPort   = "9492"
)

// StartBroker starts a broker with the project's script. stop ends it; its data stay.
func StartBroker(ctx context.Context, dir string) (address string, stop func(), err error) {
	if _, err := os.Stat(brokerScript); err != nil {
		return "", nil, errors.New("no -brokers, and " + brokerScript + " is not here: run this in the module's folder, or name a broker")
	}
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "millrace-bench-broker")
	}
	if err := brokerCommand(ctx, "start", dir); err != nil {
		return "", nil, fmt.Errorf("no -brokers, and none could be started: %w", err)
	}
	stop = func() {
		if err := brokerCommand(context.WithoutCancel(ctx), "stop", dir); err != nil {
			slog.Error("the broker was not stopped", "error", err)
		}
	}
	return "127.0.0.1:" + brokerPort, stop, nil
}

func brokerCommand(ctx context.Context, verb, dir string) error {
	out, err := exec.CommandContext(ctx, brokerScript, verb, dir, brokerPort).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s %s: %w: %s", brokerScript, verb, dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}
