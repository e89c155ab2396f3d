package brokertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

const (
	defaultImage = "apache/kafka:4.2.0"
	// A first start may have to pull the image; a start from a local image takes a few seconds.
	containerTimeout = 3 * time.Minute
	// answerTimeout bounds the time from the container's start to the broker's first answer.
	answerTimeout = time.Minute
	// clientPort is where clients connect inside the container.
	clientPort = "9092/tcp"
)

// engineAnswers reports whether a Docker engine can be reached. Without a socket it costs nothing.
func engineAnswers() (ok bool) {
	if !engineSocket() {
		return false
	}
	defer func() {
		if recover() != nil { // testcontainers panics on some hosts that it cannot make sense of
			ok = false
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		return false
	}
	defer p.Close()
	return p.Health(ctx) == nil
}

func engineSocket() bool {
	if os.Getenv("DOCKER_HOST") != "" {
		return true
	}
	home, _ := os.UserHomeDir()
	for _, path := range []string{
		"/var/run/docker.sock",
		filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "docker.sock"),
		filepath.Join(home, ".docker", "run", "docker.sock"),
		filepath.Join(home, ".testcontainers.properties"),
	} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// startContainer runs a single KRaft node in a container. Any image takes part that turns KAFKA_* variables into
// properties and starts the broker, as apache/kafka does.
func startContainer() (b *broker, err error) {
	defer func() {
		if r := recover(); r != nil {
			b, err = nil, fmt.Errorf("testcontainers: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), containerTimeout)
	defer cancel()
	host, err := engineHost(ctx)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	image := defaultImage
	if name := os.Getenv("MILLRACE_KAFKA_IMAGE"); name != "" {
		image = name
	}
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithExposedPorts(clientPort),
		testcontainers.WithHostConfigModifier(mapPort(host, port)),
		testcontainers.WithEnv(nodeConfig(addr)))
	stop := func() error { return testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)) }
	if err != nil {
		return nil, errors.Join(fmt.Errorf("container of %s: %w", image, err), stop())
	}
	if err := waitForMetadata(ctx, c, addr); err != nil {
		return nil, errors.Join(fmt.Errorf("container of %s: %w", image, err), stop())
	}
	return &broker{kind: KindContainer, addrs: []string{addr}, stop: stop}, nil
}

// engineHost is where mapped ports of the engine are reached.
func engineHost(ctx context.Context) (string, error) {
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", fmt.Errorf("no Docker engine: %w", err)
	}
	defer p.Close()
	host, err := p.DaemonHost(ctx)
	if host == "localhost" {
		host = "127.0.0.1" // where mapPort binds; localhost may mean ::1
	}
	return host, err
}

// freePort picks the mapped port beforehand, because the broker has to advertise it from its start.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// mapPort binds the client port on loopback only, unless the engine is on another machine.
func mapPort(host string, port int) func(*container.HostConfig) {
	bind := netip.IPv4Unspecified()
	if host == "127.0.0.1" {
		bind = netip.MustParseAddr(host)
	}
	return func(hc *container.HostConfig) {
		hc.PortBindings = network.PortMap{
			network.MustParsePort(clientPort): {{HostIP: bind, HostPort: strconv.Itoa(port)}},
		}
	}
}

// nodeConfig is the whole configuration of the node; apache/kafka uses its defaults only when nothing is given. The
// broker speaks to itself (transaction markers, verification), and the advertised address does not exist inside the
// container: hence the listener BROKER.
func nodeConfig(advertised string) map[string]string {
	return map[string]string{
		"KAFKA_NODE_ID":                                                     "1",
		"KAFKA_PROCESS_ROLES":                                               "broker,controller",
		"KAFKA_LISTENERS":                                                   "PLAINTEXT://0.0.0.0:9092,BROKER://127.0.0.1:9095,CONTROLLER://127.0.0.1:9094",
		"KAFKA_ADVERTISED_LISTENERS":                                        "PLAINTEXT://" + advertised + ",BROKER://127.0.0.1:9095",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":                              "PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"KAFKA_INTER_BROKER_LISTENER_NAME":                                  "BROKER",
		"KAFKA_CONTROLLER_LISTENER_NAMES":                                   "CONTROLLER",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                                    "1@127.0.0.1:9094",
		"KAFKA_NUM_PARTITIONS":                                              "4",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                                   "false",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                            "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":                                "4",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":                    "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                               "1",
		"KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS":                        "4",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":                            "0",
		"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":                                "1000",
		"KAFKA_GROUP_SHARE_ENABLE":                                          "false",
		"KAFKA_LOG_RETENTION_MS":                                            "-1",
		"KAFKA_BROKER_SESSION_TIMEOUT_MS":                                   "60000",
		"KAFKA_TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS": "1000",
	}
}

// waitForMetadata returns once the broker answers a client, or with the end of the container's log.
func waitForMetadata(ctx context.Context, c testcontainers.Container, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		last := answers(addr)
		if last == nil {
			return nil
		}
		state, err := c.State(ctx)
		if err != nil {
			return errors.Join(last, err)
		}
		if !state.Running {
			return fmt.Errorf("the broker ended while starting (exit code %d): %s", state.ExitCode, logTail(c))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the broker did not answer on %s: %w: %s", addr, last, logTail(c))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func logTail(c testcontainers.Container) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
