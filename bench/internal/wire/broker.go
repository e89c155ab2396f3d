package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	brokerScript = "scripts/kafka/broker.sh"
	brokerPort   = "9492"
)

// LocalBroker is one that the project's script has started.
type LocalBroker struct {
	Address string
	PID     int // 0 if it is not known
	dir     string
}

// StartBroker starts a broker with the project's script.
func StartBroker(ctx context.Context, dir string) (*LocalBroker, error) {
	if _, err := os.Stat(brokerScript); err != nil {
		return nil, errors.New("no -brokers, and " + brokerScript + " is not here: run this in the module's folder, or name a broker")
	}
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "millrace-bench-broker")
	}
	if err := brokerCommand(ctx, "start", dir); err != nil {
		return nil, fmt.Errorf("no -brokers, and none could be started: %w", err)
	}
	b := &LocalBroker{Address: "127.0.0.1:" + brokerPort, dir: dir}
	if text, err := os.ReadFile(filepath.Join(dir, "kafka.pid")); err == nil {
		b.PID, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return b, nil
}

// Stop ends the broker; its data stay.
func (b *LocalBroker) Stop() {
	if err := brokerCommand(context.Background(), "stop", b.dir); err != nil {
		slog.Error("the broker was not stopped", "error", err)
	}
}

func brokerCommand(ctx context.Context, verb, dir string) error {
	out, err := exec.CommandContext(ctx, brokerScript, verb, dir, brokerPort).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s %s: %w: %s", brokerScript, verb, dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}
