package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
)

// startWait bounds the wait for a broker that answers, and for topics to be ready, for each call that an application makes
// while it starts.
const startWait = 30 * time.Second

// answered makes a call again until a broker has answered it for good, as when brokers are restarted while an application
// starts.
func (c *Cluster) answered(ctx context.Context, call func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("no broker has done it within %v", startWait))
	defer cancel()
	if err := c.insist(ctx, call); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// insist makes a call again until it succeeds, or is refused for good, or ctx ends. It returns the call's last error.
func (c *Cluster) insist(ctx context.Context, call func() error) error {
	waiting := trouble{log: c.cfg.Logger, what: "no broker to work with yet, trying again", over: "a broker works"}
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := call()
		if err == nil {
			waiting.left(c)
		}
		if err == nil || !worthAnotherTry(err) {
			return err
		}
		waiting.has(c, err, "brokers", c.cfg.Brokers)
		if !pause(ctx, wait) {
			return err
		}
	}
}

// untilReady are refusals of brokers that are coming or going: the replicas of a new topic are counted among those that are
// there.
var untilReady = map[sarama.KError]bool{sarama.ErrNotController: true, sarama.ErrInvalidReplicationFactor: true}

// worthAnotherTry reports whether an error may be gone later: nobody has answered, or somebody who cannot work yet.
func worthAnotherTry(err error) bool {
	var settings sarama.ConfigurationError
	if errors.As(err, &settings) || errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return false
	}
	code, refused := refusal(err)
	return !refused || untilReady[code] || meaning[code] == eos.Retry || meaning[code] == eos.NoAnswer
}
