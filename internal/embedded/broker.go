package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options says how to start a Broker. The zero value is a broker in memory on a free port.
type Options struct {
	// Dir is the directory of the broker's log, made when it is missing. Empty keeps everything in memory.
	Dir string
	// Port is the TCP port on 127.0.0.1. Zero takes a free one, another one at each start.
	Port int
	// Logger receives warnings and errors of the broker. Nil is slog.Default().
	Logger *slog.Logger
	// Partitions is the number of partitions of a topic that is created without saying how many. Zero means 4.
	Partitions int
	// TopicAutoCreate lets a client's metadata request create a topic. Off by default.
	TopicAutoCreate bool
	// GroupMinSessionTimeout is the shortest session timeout that a group member may ask for. Zero means 10 ms.
	GroupMinSessionTimeout time.Duration
}

// Broker is a running embedded broker. Its methods may be called from any goroutine.
type Broker struct {
	cluster *kfake.Cluster
	dir     *directory // nil in memory
	faults  *logger
	addrs   []string
	close   sync.Once
	closed  error
}

// Start runs a broker and returns once it accepts connections. It fails with an error that wraps ErrInUse when another
// broker has Options.Dir open.
func Start(opts Options) (*Broker, error) {
	opts = withDefaults(opts)
	b := &Broker{faults: &logger{to: opts.Logger, lost: func(error) {}}}
	if opts.Dir != "" {
		dir, err := openDirectory(opts.Dir)
		if err != nil {
			return nil, err
		}
		b.dir = dir
		b.faults.lost = func(error) { _ = dir.distrust() } // Close reports the error
		if dir.notice != "" {
			opts.Logger.Warn("embedded: " + dir.notice)
		}
	}
	gate := make(chan struct{})
	cluster, err := kfake.NewCluster(clusterOptions(opts, b, gate)...)
	if err != nil {
		close(gate)
		if b.dir != nil { // a log that was not opened is as good as before
			err = errors.Join(err, b.dir.close())
		}
		return nil, fmt.Errorf("embedded: start the broker: %w", err)
	}
	b.cluster = cluster
	watchSyncs(cluster)
	if b.dir != nil {
		guard(cluster, b.dir)
	}
	close(gate)
	b.addrs = cluster.ListenAddrs()
	return b, nil
}

func withDefaults(opts Options) Options {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Partitions == 0 {
		opts.Partitions = 4
	}
	if opts.GroupMinSessionTimeout == 0 {
		opts.GroupMinSessionTimeout = 10 * time.Millisecond
	}
	return opts
}

// never is a limit that is not reached (ten years of milliseconds, hundreds of gigabytes), for work that the broker must
// not do by itself.
const never = "315360000000"

func clusterOptions(opts Options, b *Broker, gate <-chan struct{}) []kfake.Opt {
	o := []kfake.Opt{
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			return gated{l, gate}, err
		}),
		kfake.Ports(opts.Port),
		kfake.WithLogger(b.faults),
		kfake.DefaultNumPartitions(opts.Partitions),
		kfake.GroupMinSessionTimeout(opts.GroupMinSessionTimeout),
		kfake.BrokerConfigs(map[string]string{
			// kfake's compaction takes records of open transactions for committed ones, and a crash in the middle of it
			// loses the partition. Tests that want it call Cluster().Compact() at a quiet moment.
			"log.cleaner.backoff.ms": never,
			// Offsets that age out would make an application count its input again.
			"offset.retention.ms": never,
			// The state logs are rewritten when the broker closes; repair counts on that they only grow until then.
			"state.log.compact.bytes": never,
		}),
	}
	if opts.TopicAutoCreate {
		o = append(o, kfake.AllowAutoTopicCreation())
	}
	if b.dir != nil {
		o = append(o, kfake.DataDir(b.dir.data()), kfake.ClusterID(b.dir.id))
	}
	return o
}

// gated accepts connections once its gate is open.
type gated struct {
	net.Listener
	open <-chan struct{}
}

func (g gated) Accept() (net.Conn, error) {
	<-g.open
	return g.Listener.Accept()
}

// Addrs returns the bootstrap addresses, host:port. The caller must not change the slice.
func (b *Broker) Addrs() []string { return b.addrs }

// Cluster returns the broker behind, for tests that inject faults or look inside.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Fresh reports whether Start began an empty log. The reason is empty when there was none before (or none is kept), and
// says where the old log went when one could not be trusted; then local state that belongs to it must be dropped.
func (b *Broker) Fresh() (fresh bool, reason string) {
	if b.dir == nil {
		return true, ""
	}
	if !b.dir.fresh {
		return false, ""
	}
	return true, b.dir.notice
}

// Repaired reports whether the last broker on this log ended without Close and its log was repaired: all that it
// acknowledged is there, and transactions that were open are aborted. Local state that belongs to the log stays valid.
func (b *Broker) Repaired() bool { return b.dir != nil && b.dir.mended && !b.dir.fresh }

// LogID names the log: it stays the same over clean restarts and differs for every fresh log. It is empty in memory,
// where no log outlives the broker.
func (b *Broker) LogID() string {
	if b.dir == nil {
		return ""
	}
	return b.dir.id
}

// Close ends the broker and makes its log durable. Open transactions stay open over a clean restart. Clients should be
// closed before. When the log could not be written, Close returns the error and the next Start begins a fresh log.
// Further calls return the first result.
func (b *Broker) Close() error {
	b.close.Do(func() {
		b.cluster.Close()
		if b.dir == nil {
			return
		}
		if err := b.faults.firstError(); err != nil {
			b.closed = errors.Join(fmt.Errorf("embedded: write the log in %s: %w", b.dir.path, err), b.dir.distrust(), b.dir.abandon())
			return
		}
		b.closed = b.dir.close()
	})
	return b.closed
}
