package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/millrace-streams/millrace/internal/chaos/wire"
)

// broker is a Kafka of the suite's own. Beside the listener that the suite itself uses it has one for each process of the
// application, which is reached through the process's proxy alone: that is the address that the broker tells its clients.
type broker struct {
	script, folder, port string
	proxies              []*wire.Proxy
	addr                 string // not through a proxy
	environment          []string

	mu sync.Mutex // one command at a time
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

// newBroker chooses ports, makes the proxies and starts the broker. port 0 is a free one; the ports above it are used too.
func newBroker(ctx context.Context, script, folder string, port, processes int) (*broker, error) {
	b := &broker{script: script, folder: folder}
	ports, err := freePorts(port, 2+processes)
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
	b.environment = append(os.Environ(), "KAFKA_PROPERTIES="+properties)
	if err := b.command(ctx, "start"); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

// command runs the project's script: start, stop or kill.
func (b *broker) command(ctx context.Context, verb string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	cmd := exec.CommandContext(ctx, "bash", b.script, verb, b.folder, b.port)
	cmd.Env = b.environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s %s: %w: %s", b.script, verb, b.folder, err, strings.TrimSpace(string(out)))
	}
	return nil
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
func freePorts(first, n int) ([]int, error) {
	for range 100 {
		if ports, ok := portsFrom(first, n); ok {
			return ports, nil
		}
		if first != 0 {
			return nil, fmt.Errorf("the ports %d to %d are not all free", first, first+n-1)
		}
	}
	return nil, errors.New("no free ports in a row")
}

// portsFrom tries a row of ports. 0 begins anywhere.
func portsFrom(first, n int) (ports []int, ok bool) {
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
		if err != nil {
			return nil, false
		}
		defer l.Close()
		if i == 0 {
			first = l.Addr().(*net.TCPAddr).Port
		}
		ports = append(ports, first)
		first++
	}
	return ports, true
}
