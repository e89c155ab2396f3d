package kafka

import (
	"io"
	"net"
	"sync"

	"github.com/IBM/sarama"
)

// API keys of requests whose answers tests lose.
const (
	keyProduce       = 0
	keyInitProducer  = 22
	keyAddPartitions = 24
	keyAddOffsets    = 25
	keyEndTxn        = 26
	keyOffsetCommit  = 28 // TxnOffsetCommit
)

// lossy is a network that loses the answers to some requests: the broker has done what was asked, then the connection
// breaks.
type lossy struct {
	mu   sync.Mutex
	lose map[int16]int // by API key
	lost int
}

func (l *lossy) configure(conf *sarama.Config) {
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = l
}

// Dial connects.
func (l *lossy) Dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: conn, network: l}, nil
}

func (l *lossy) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

type lossyConn struct {
	net.Conn
	network *lossy
	broken  bool // the next answer is lost
}

// Write sends a request: sarama writes each in one piece, its length first and then its API key.
func (c *lossyConn) Write(b []byte) (int, error) {
	if len(b) >= 6 {
		key := int16(b[4])<<8 | int16(b[5])
		c.network.mu.Lock()
		if c.network.lose[key] > 0 {
			c.network.lose[key]--
			c.broken = true
		}
		c.network.mu.Unlock()
	}
	return c.Conn.Write(b)
}

// Read reads an answer. The broker's goes into the void when it is to be lost.
func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.broken && err == nil {
		c.network.lost++
		_ = c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
