package kafka

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// retryPause is how long the group's client waits between two tries to reach a broker.
const retryPause = 250 * time.Millisecond

// dialer opens the connections of one or more clients and can end them all, so that closing does not have to wait for an
// answer that may never come.
type dialer struct {
	inner interface {
		Dial(network, addr string) (net.Conn, error)
	}
	pause  time.Duration   // after a failure
	ctx    context.Context // ends with it
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

// useDialer makes conf open its connections through a dialer of its own, around the one that the user chose.
func useDialer(conf *sarama.Config, pause time.Duration) *dialer {
	d := &dialer{pause: pause, conns: map[net.Conn]struct{}{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if conf.Net.Proxy.Enable {
		d.inner = conf.Net.Proxy.Dialer
	} else {
		d.inner = plain{d.ctx, &net.Dialer{Timeout: conf.Net.DialTimeout, KeepAlive: conf.Net.KeepAlive, LocalAddr: conf.Net.LocalAddr}}
	}
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = d
	return d
}

// plain is a net.Dialer that gives up when ctx ends.
type plain struct {
	ctx    context.Context
	dialer *net.Dialer
}

// Dial connects.
func (p plain) Dial(network, addr string) (net.Conn, error) {
	return p.dialer.DialContext(p.ctx, network, addr)
}

// Dial connects and remembers the connection. It takes its time to fail: sarama counts tries, not seconds.
func (d *dialer) Dial(network, addr string) (net.Conn, error) {
	conn, err := d.inner.Dial(network, addr)
	if err != nil {
		pause(d.ctx, d.pause)
		return nil, err
	}
	c := &trackedConn{Conn: conn, dialer: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		_ = conn.Close()
		return nil, ErrClosed
	}
	d.conns[c] = struct{}{}
	return c, nil
}

// end closes all connections; none can be opened any more.
func (d *dialer) end() {
	d.cancel()
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.reset()
}

// reset closes all connections: requests that wait for an answer fail, and the next ones are made on new connections.
func (d *dialer) reset() {
	d.mu.Lock()
	conns := make([]net.Conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// trackedConn is a connection that its dialer knows of.
type trackedConn struct {
	net.Conn
	dialer *dialer
}

// Close closes the connection and forgets it.
func (c *trackedConn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
