package integration

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// Kafka's numbers of the requests that tests look at.
const (
	keyFetch  = 1
	keyEndTxn = 26
)

// fate is what becomes of a request or an answer on the wire.
type fate uint8

const (
	pass    fate = iota
	swallow      // it never arrives; the connection stays
	cut          // it never arrives; the connection ends
)

// wire is a proxy between an application and its brokers that can lose single messages. Its functions may be called from
// several goroutines; nil lets everything pass.
type wire struct {
	request  func(key int16, frame []byte) fate
	response func(key int16, frame []byte) fate
}

// configure makes a client's connections go through the wire. An answer that does not come is missed soon.
func (w *wire) configure(c *sarama.Config) {
	c.Net.Proxy.Enable = true
	c.Net.Proxy.Dialer = w
	c.Net.ReadTimeout = time.Second
}

// Dial implements sarama's proxy.Dialer.
func (w *wire) Dial(network, addr string) (net.Conn, error) {
	broker, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(network, addr)
	if err != nil {
		return nil, err
	}
	client, ours := net.Pipe()
	l := &link{wire: w, client: ours, broker: broker, keys: map[int32]int16{}}
	go l.pump(ours, broker, l.asked)
	go l.pump(broker, ours, l.answered)
	return client, nil
}

// link is one connection.
type link struct {
	wire           *wire
	client, broker net.Conn

	mu   sync.Mutex
	keys map[int32]int16 // of requests by correlation id
}

// pump moves frames until either side is closed.
func (l *link) pump(from, to net.Conn, judge func([]byte) fate) {
	defer l.client.Close()
	defer l.broker.Close()
	for {
		frame, err := readFrame(from)
		if err != nil {
			return
		}
		switch judge(frame) {
		case cut:
			return
		case swallow:
			continue
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// readFrame returns a whole message with its length.
func readFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(frame)
	if size > 100<<20 {
		return nil, errors.New("no Kafka message")
	}
	frame = append(frame, make([]byte, size)...)
	_, err := io.ReadFull(from, frame[4:])
	return frame, err
}

func (l *link) asked(frame []byte) fate {
	key := int16(binary.BigEndian.Uint16(frame[4:]))
	l.mu.Lock()
	l.keys[int32(binary.BigEndian.Uint32(frame[8:]))] = key
	l.mu.Unlock()
	if l.wire.request == nil {
		return pass
	}
	return l.wire.request(key, frame)
}

func (l *link) answered(frame []byte) fate {
	correlation := int32(binary.BigEndian.Uint32(frame[4:]))
	l.mu.Lock()
	key := l.keys[correlation]
	delete(l.keys, correlation)
	l.mu.Unlock()
	if l.wire.response == nil {
		return pass
	}
	return l.wire.response(key, frame)
}
