package kafka

import (
	"errors"
	"sync"

	"github.com/IBM/sarama"
)

// lines are the connections of one user (a fetch loop, a committer), at most one to each broker. They are opened when
// needed; one that failed is dropped and replaced.
type lines struct {
	conf *sarama.Config

	mu     sync.Mutex
	open   map[string]*sarama.Broker
	closed bool
}

func newLines(conf *sarama.Config) *lines {
	return &lines{conf: conf, open: map[string]*sarama.Broker{}}
}

// to returns the connection to a broker. Connecting goes on in the background: a request waits for it.
func (l *lines) to(addr string) (*sarama.Broker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	b := l.open[addr]
	if b == nil {
		b = sarama.NewBroker(addr)
		if err := b.Open(l.conf); err != nil {
			return nil, err
		}
		l.open[addr] = b
	}
	return b, nil
}

// drop closes a connection after a failure.
func (l *lines) drop(b *sarama.Broker) {
	l.mu.Lock()
	if l.open[b.Addr()] == b {
		delete(l.open, b.Addr())
	}
	l.mu.Unlock()
	_ = b.Close() // it may be closed already
}

// close closes all of them. Nobody may be using them.
func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for _, b := range open {
		_ = b.Close()
	}
}

// refusal returns the broker's error code in err. ok is false for nil and for failures on the way: no connection, no
// answer, an answer that makes no sense.
func refusal(err error) (code sarama.KError, ok bool) {
	ok = errors.As(err, &code)
	return code, ok && code != sarama.ErrNoError
}
