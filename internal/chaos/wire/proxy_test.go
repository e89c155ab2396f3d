package wire_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// echo is a broker that answers every request with its own bytes, and tells of it.
func echo(t *testing.T) (addr string, got chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got = make(chan []byte, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for {
					head := make([]byte, 4)
					if _, err := io.ReadFull(conn, head); err != nil {
						return
					}
					body := make([]byte, binary.BigEndian.Uint32(head))
					if _, err := io.ReadFull(conn, body); err != nil {
						return
					}
					got <- body
					answer := append(append([]byte{}, body[4:8]...), body...) // the correlation id comes first
					_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

// client is a connection through a proxy.
type client struct {
	t    *testing.T
	conn net.Conn
	next uint32
}

func newProxy(t *testing.T) (*wire.Proxy, chan []byte) {
	t.Helper()
	addr, got := echo(t)
	p, err := wire.Listen("127.0.0.1:0", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, got
}

func dial(t *testing.T, p *wire.Proxy) *client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn}
}

func (c *client) ask(key int16) {
	c.t.Helper()
	c.next++
	body := binary.BigEndian.AppendUint16(nil, uint16(key))
	body = binary.BigEndian.AppendUint16(body, 7)
	body = binary.BigEndian.AppendUint32(body, c.next)
	if _, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		c.t.Fatal(err)
	}
}

// answer returns the correlation id of the next answer.
func (c *client) answer() (uint32, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c.conn, head); err != nil {
		return 0, err
	}
	_, err := io.CopyN(io.Discard, c.conn, int64(binary.BigEndian.Uint32(head))-4)
	return binary.BigEndian.Uint32(head[4:]), err
}

func (c *client) wantAnswer(id uint32) {
	c.t.Helper()
	if got, err := c.answer(); err != nil || got != id {
		c.t.Fatalf("answer %d (%v), want %d", got, err, id)
	}
}

func TestOnlyTheNamedMessageIsLost(t *testing.T) {
	t.Parallel()
	for _, action := range []wire.Action{wire.LoseRequest, wire.LoseAnswer, wire.CutAnswer} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			p, got := newProxy(t)
			r := &wire.Rule{Key: wire.EndTxn, Action: action, Applied: make(chan struct{})}
			p.Arm(r)
			c := dial(t, p)
			c.ask(wire.Produce)
			c.wantAnswer(1)
			<-got
			c.ask(wire.EndTxn)
			if _, err := c.answer(); err == nil || errors.Is(err, net.ErrClosed) {
				t.Fatalf("an answer came (%v)", err)
			}
			<-r.Applied
			select {
			case <-got:
				if action == wire.LoseRequest {
					t.Error("the broker got the request")
				}
			default:
				if action != wire.LoseRequest {
					t.Error("the broker did not get the request")
				}
			}
			again := dial(t, p) // the rule is over
			again.ask(wire.EndTxn)
			again.wantAnswer(1)
		})
	}
}

func TestLateAndSwallowedAnswers(t *testing.T) {
	t.Parallel()
	p, _ := newProxy(t)
	p.Arm(&wire.Rule{Key: wire.Heartbeat, Action: wire.DelayAnswer, Delay: 50 * time.Millisecond, Times: 2})
	p.Arm(&wire.Rule{Key: wire.Fetch, Action: wire.SwallowAnswer})
	c := dial(t, p)
	began := time.Now()
	for range 3 {
		c.ask(wire.Heartbeat)
	}
	for id := range uint32(3) {
		c.wantAnswer(id + 1)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("two answers of 50 ms each came in %v", took)
	}
	c.ask(wire.Fetch)
	c.ask(wire.Produce)
	c.wantAnswer(5)
	p.Heal()
	if _, err := c.answer(); err == nil {
		t.Error("a connection that misses an answer goes on")
	}
}

// A rule without an end applies until it is disarmed.
func TestDisarm(t *testing.T) {
	t.Parallel()
	p, _ := newProxy(t)
	r := &wire.Rule{Key: wire.EndTxn, Action: wire.LoseRequest, Times: wire.Always}
	p.Arm(r)
	for range 3 {
		c := dial(t, p)
		c.ask(wire.EndTxn)
		if _, err := c.answer(); err == nil {
			t.Fatal("an answer came")
		}
	}
	p.Disarm(r)
	c := dial(t, p)
	c.ask(wire.EndTxn)
	c.wantAnswer(1)
}

// What is done to a request is done before the broker gets it.
func TestDoComesFirst(t *testing.T) {
	t.Parallel()
	p, got := newProxy(t)
	early := false
	p.Arm(&wire.Rule{Key: wire.EndTxn, Action: wire.PassRequest, Do: func() {
		time.Sleep(10 * time.Millisecond)
		early = len(got) > 0
	}})
	c := dial(t, p)
	c.ask(wire.EndTxn)
	c.wantAnswer(1)
	if early {
		t.Error("the broker got the request before")
	}
}

func TestHoldUp(t *testing.T) {
	t.Parallel()
	p, got := newProxy(t)
	c := dial(t, p)
	c.ask(wire.Produce)
	c.wantAnswer(1)
	<-got
	p.HoldUp()
	c.ask(wire.Produce)
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.answer(); err == nil {
		t.Fatal("something was passed on")
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	p.Heal()
	c.wantAnswer(2)
	p.Cut()
	if _, err := c.answer(); err == nil {
		t.Error("a connection was not cut")
	}
}
