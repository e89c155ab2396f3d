package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// broker is a Kafka of the suite's own. Beside the listener that the suite itself uses it has one for each process of the
// application, which is reached through the process's proxy alone: that is the address that the broker tells its clients.
type broker struct {
	script, folder, port string
	proxies              []*wire.Proxy
	addr                 string // not through a proxy
	environment          []string

	faults sync.RWMutex // held for writing while the broker is out of order
	during atomic.Int32 // faults that may still come while it is
}

// brokerSettings keep faults from taking long. Segments are small and cleaned often, so that changelogs are compacted while
// they are read; the cleaner leaves the active segment alone.
const brokerSettings = `
log.message.timestamp.after.max.ms=9223372036854775807
num.network.threads=1
num.io.threads=4
log.segment.bytes=1048576
log.cleaner.backoff.ms=1000
log.cleaner.min.cleanable.ratio=0.05
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
`

// fastStart makes Java start a broker in less time.
const fastStart = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

// newBroker chooses ports, makes the proxies and starts the broker. port 0 is a free one; the ports above it are used too.
func newBroker(ctx context.Context, script, folder string, port, processes int) (*broker, error) {
	b := &broker{script: script, folder: folder}
	ports, err := freePorts(ctx, port, 2+processes)
	if err != nil {
		return nil, err
	}
	b.port, b.addr = fmt.Sprint(ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[0])
	listeners := []string{"PLAINTEXT://" + b.addr, fmt.Sprintf("CONTROLLER://127.0.0.1:%d", ports[1])}
	advertised := []string{"PLAINTEXT://" + b.addr}
	protocols := []string{"CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT"}
	for i, p := range ports[2:] {
		target := fmt.Sprintf("127.0.0.1:%d", p)
		proxy, err := wire.Listen("127.0.0.1:0", target)
		if err != nil {
			return nil, errors.Join(err, b.close(ctx))
		}
		b.proxies = append(b.proxies, proxy)
		listeners = append(listeners, fmt.Sprintf("P%d://%s", i, target))
		advertised = append(advertised, fmt.Sprintf("P%d://%s", i, proxy.Addr()))
		protocols = append(protocols, fmt.Sprintf("P%d:PLAINTEXT", i))
	}
	properties := filepath.Join(folder, "chaos.properties")
	text := fmt.Sprintf("listeners=%s\nadvertised.listeners=%s\nlistener.security.protocol.map=%s\n%s",
		strings.Join(listeners, ","), strings.Join(advertised, ","), strings.Join(protocols, ","), brokerSettings)
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(properties, []byte(text), 0o644)); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	b.environment = append(os.Environ(), "KAFKA_PROPERTIES="+properties, "JDK_JAVA_OPTIONS="+fastStart)
	if err := b.command(ctx, "start"); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

// command runs the project's script: start, stop or kill.
func (b *broker) command(ctx context.Context, verb string) error {
	cmd := exec.CommandContext(ctx, "bash", b.script, verb, b.folder, b.port)
	cmd.Env = b.environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s %s: %w: %s", b.script, verb, b.folder, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// fewDuring is how many other faults come while the broker is out of order: most need a broker to have an effect.
const fewDuring = 6

// spare waits until the broker is in order, unless few faults have come since it is not.
func (b *broker) spare() {
	if b.during.Add(-1) < 0 {
		b.works()
	}
}

// works waits until the broker is in order.
func (b *broker) works() {
	b.faults.RLock()
	defer b.faults.RUnlock()
}

// stall makes the broker stand still until goOn is called.
func (b *broker) stall() (goOn func(), err error) {
	text, err := os.ReadFile(filepath.Join(b.folder, "kafka.pid"))
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stall the broker: %w", err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil
}

// close ends the broker and the proxies.
func (b *broker) close(ctx context.Context) error {
	err := b.command(context.WithoutCancel(ctx), "kill")
	for _, p := range b.proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}

// freePorts returns n free ports in a row.
func freePorts(ctx context.Context, first, n int) (ports []int, err error) {
	err = eventually(ctx, 10*time.Second, func() (err error) { // a broker that has just ended may still have them
		ports, err = portsFrom(first, n)
		return err
	})
	return ports, err
}

// portsFrom tries a row of ports. 0 begins anywhere.
func portsFrom(first, n int) (ports []int, err error) {
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
		if err != nil {
			return nil, err
		}
		defer l.Close()
		if i == 0 {
			first = l.Addr().(*net.TCPAddr).Port
		}
		ports = append(ports, first)
		first++
	}
	return ports, nil
}
