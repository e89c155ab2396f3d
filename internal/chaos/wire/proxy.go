// Package wire is a proxy between Kafka's clients and a broker that can lose, delay or cut off single messages: it knows where
// a message begins and which request an answer belongs to.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Proxy passes connections on to one broker. Its methods may be used from several goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	rules  []*Rule
	links  map[*link]struct{}
	held   chan struct{} // not nil while the proxy holds everything up; closed when that ends
	closed bool
}

// Listen returns a proxy at the address, whose port may be 0, for the broker at target.
func Listen(addr, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	p := &Proxy{target: target, listener: l, links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Arm adds a rule. It is over when it has been applied Times times, when it is disarmed, or at the next Heal.
func (p *Proxy) Arm(r *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
}

// Disarm ends a rule, if it is not over.
func (p *Proxy) Disarm(r *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.DeleteFunc(p.rules, func(armed *Rule) bool { return armed == r })
}

// HoldUp makes the proxy pass nothing on, without ending a connection, until PassOn: a network that is split.
func (p *Proxy) HoldUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(chan struct{})
	}
}

// PassOn ends a HoldUp.
func (p *Proxy) PassOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passOn()
}

// Cut ends all connections, and returns how many there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.end()
	}
	return len(p.links)
}

// Heal forgets all rules, and passes everything on. A connection of which an answer was swallowed ends, as it does when a
// network comes back: its peer has forgotten it.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	p.passOn()
	for l := range p.links {
		if l.mute {
			l.end()
		}
	}
}

// passOn ends a HoldUp; mu is held.
func (p *Proxy) passOn() {
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// Close ends everything.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.passOn()
	for l := range p.links {
		l.end()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.work.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.wait()
	broker, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, broker: broker, keys: map[int32]int16{}, over: make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		l.end()
	} else {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	p.work.Go(func() { l.pump(client, broker, l.asked) })
	l.pump(broker, client, l.answered)
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// wait returns when the proxy passes on.
func (p *Proxy) wait() {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held != nil {
		<-held
	}
}

// judge returns the rule that applies to a message, nil if none does.
func (p *Proxy) judge(key int16, answer bool) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		if r.Key != key || r.Action.concernsAnswers() != answer {
			continue
		}
		r.applied++
		if r.applied >= max(r.Times, 1) {
			p.rules = slices.Delete(p.rules, i, i+1)
		}
		if r.applied == 1 && r.Applied != nil {
			close(r.Applied)
		}
		return r
	}
	return nil
}

// link is one connection of a client, and the one to the broker that belongs to it.
type link struct {
	proxy          *Proxy
	client, broker net.Conn
	once           sync.Once
	over           chan struct{}
	mute           bool // an answer was swallowed; guarded by the proxy

	mu   sync.Mutex
	keys map[int32]int16 // of requests by correlation id
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.over)
		_ = l.client.Close()
		_ = l.broker.Close()
	})
}

// pump moves messages until either side is closed. look passes one on, or does not, and reports whether to go on.
func (l *link) pump(from io.Reader, to io.Writer, look func(to io.Writer, message []byte) bool) {
	defer l.end()
	for {
		message, err := readMessage(from)
		if err != nil {
			return
		}
		l.proxy.wait()
		if !look(to, message) {
			return
		}
	}
}

const largestMessage = 100 << 20

// readMessage returns a whole message with its length in front.
func readMessage(from io.Reader) ([]byte, error) {
	message := make([]byte, 4)
	if _, err := io.ReadFull(from, message); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(message)
	if size < 4 || size > largestMessage {
		return nil, errors.New("wire: no message of Kafka's protocol")
	}
	message = append(message, make([]byte, size)...)
	_, err := io.ReadFull(from, message[4:])
	return message, err
}

// asked passes on a request: length, key, version, correlation id.
func (l *link) asked(to io.Writer, message []byte) bool {
	if len(message) < 12 {
		return false
	}
	key := int16(binary.BigEndian.Uint16(message[4:]))
	if r := l.proxy.judge(key, false); r != nil {
		return r.apply(l, to, message)
	}
	l.mu.Lock()
	l.keys[int32(binary.BigEndian.Uint32(message[8:]))] = key
	l.mu.Unlock()
	_, err := to.Write(message)
	return err == nil
}

// answered passes on an answer: length, correlation id.
func (l *link) answered(to io.Writer, message []byte) bool {
	correlation := int32(binary.BigEndian.Uint32(message[4:]))
	l.mu.Lock()
	key, known := l.keys[correlation]
	delete(l.keys, correlation)
	l.mu.Unlock()
	if known {
		if r := l.proxy.judge(key, true); r != nil {
			return r.apply(l, to, message)
		}
	}
	_, err := to.Write(message)
	return err == nil
}
