package brokertest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-streams/millrace/internal/embedded"
	"github.com/rcrowley/go-metrics"
)

// The kinds of broker that Kind returns.
const (
	KindReal      = "real"      // named by MILLRACE_BROKERS
	KindContainer = "container" // started through a Docker engine
	KindEmbedded  = "embedded"  // in this process
)

// broker is one started broker.
type broker struct {
	kind  string
	addrs []string
	stop  func() error
}

// shared is the broker of this process. It runs while it has users; Main counts as one.
var shared struct {
	sync.Mutex
	users  int
	broker *broker
	err    error // why it did not start; later users get the same answer
}

// Brokers returns the bootstrap addresses of the process's broker, starting it when nobody has yet. It fails the test
// when the broker cannot be had.
func Brokers(t testing.TB) []string {
	t.Helper()
	return acquire(t).addrs
}

// Kind returns the kind of broker behind Brokers: KindReal, KindContainer or KindEmbedded.
func Kind(t testing.TB) string {
	t.Helper()
	return acquire(t).kind
}

// Embedded returns a private embedded broker in memory, closed when the test ends.
func Embedded(t testing.TB) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("brokertest: %v", err)
		}
	})
	return b
}

// Main runs the tests of a package and ends the shared broker after the last one. It does not return.
func Main(m *testing.M) {
	// sarama's meters start a ticker that never stops.
	metrics.UseNilMetrics = true
	shared.Lock()
	shared.users++
	shared.Unlock()
	code := m.Run()
	if err := release(); err != nil {
		fmt.Fprintf(os.Stderr, "brokertest: end the broker: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// acquire makes the test a user of the shared broker until it ends.
func acquire(t testing.TB) *broker {
	t.Helper()
	shared.Lock()
	if shared.broker == nil && shared.err == nil {
		shared.broker, shared.err = start(t)
	}
	b, err := shared.broker, shared.err
	if err == nil {
		shared.users++
	}
	shared.Unlock()
	if err != nil {
		t.Fatalf("brokertest: %v", err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Errorf("brokertest: end the broker: %v", err)
		}
	})
	return b
}

// release takes one user off, and ends the broker with the last.
func release() error {
	shared.Lock()
	defer shared.Unlock()
	shared.users--
	if shared.users > 0 || shared.broker == nil {
		return nil
	}
	b := shared.broker
	shared.broker = nil
	return b.stop()
}

// start chooses and starts the process's broker.
func start(t testing.TB) (*broker, error) {
	if addrs := os.Getenv("MILLRACE_BROKERS"); addrs != "" {
		return &broker{kind: KindReal, addrs: strings.Split(addrs, ","), stop: func() error { return nil }}, nil
	}
	if mode := os.Getenv("MILLRACE_CONTAINER"); mode != "0" {
		required := mode == "1"
		if !required && !engineAnswers() {
			return startEmbedded()
		}
		b, err := startContainer()
		if err == nil || required {
			return b, err
		}
		warn(t, "A Docker engine answers, but no Kafka container could be started:", err.Error(),
			"These tests run on the EMBEDDED broker instead. MILLRACE_CONTAINER=1 makes this an error,",
			"MILLRACE_CONTAINER=0 does not try, MILLRACE_KAFKA_IMAGE names another image.")
	}
	return startEmbedded()
}

func startEmbedded() (*broker, error) {
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		return nil, err
	}
	return &broker{kind: KindEmbedded, addrs: b.Addrs(), stop: b.Close}, nil
}

// warn is loud on purpose: standard error shows up without -v, and a test's log does not.
func warn(t testing.TB, lines ...string) {
	bar := strings.Repeat("!", 100)
	fmt.Fprintf(os.Stderr, "%s\nbrokertest (%s): %s\n%s\n", bar, t.Name(), strings.Join(lines, "\n  "), bar)
}
