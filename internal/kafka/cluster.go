package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// Cluster is one process's access to a Kafka cluster. Its methods may be used from several goroutines.
type Cluster struct {
	cfg     Config
	codec   sarama.CompressionCodec
	conf    *sarama.Config // of all connections but the group's
	dialer  *dialer
	control sarama.Client // metadata and coordinators
	admin   *lines        // offsets, topics
	fetcher *fetcher

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // every goroutine but those of sarama

	mu    sync.Mutex
	group *group

	closing sync.Once
}

// TaskInfo is what a lease is about: all of its inputs go to the same process, to the same worker.
type TaskInfo struct {
	ID         processor.TaskID
	Inputs     []processor.TopicPartition
	Changelogs []Changelog
	// Repartition names the topics among the inputs that are purged of what is committed.
	Repartition []string
	// Weight is the task's share of work relative to others; at least 1, which 0 means too.
	Weight int
}

// Changelog is the changelog partition of one of a task's stores.
type Changelog struct {
	Store string
	processor.TopicPartition
}

// Open connects. The error says why no broker could be asked; ctx bounds the wait for it.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	codec, err := cfg.codec()
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, codec: codec, conf: cfg.client()}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.dialer = useDialer(c.conf, 0)
	if c.control, err = c.connect(ctx); err != nil {
		c.cancel()
		c.dialer.end()
		return nil, err
	}
	c.admin = newLines(c.conf)
	c.fetcher = newFetcher(c)
	return c, nil
}

// connect makes the control client and asks for the group's coordinator, until both have worked: brokers may be starting.
func (c *Cluster) connect(ctx context.Context) (client sarama.Client, err error) {
	defer context.AfterFunc(ctx, func() { // a request that is not answered must not outlast it
		c.cancel()
		c.dialer.end()
	})()
	err = c.insist(c.ctx, func() error {
		if client == nil {
			if client, err = sarama.NewClient(c.cfg.Brokers, c.conf); err != nil {
				client = nil // not the interface that holds no client
				return err
			}
		}
		_, err := client.Coordinator(c.cfg.App)
		return err
	})
	if err != nil && client != nil {
		err = errors.Join(err, client.Close())
		client = nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kafka: %w", err), context.Cause(ctx))
	}
	return client, nil
}

// Start joins the group and returns one port per worker, never more than tasks. When ctx ends, every worker is told to
// stop; once all leases are released the process leaves the group. Start may be called once.
func (c *Cluster) Start(ctx context.Context, tasks []TaskInfo) ([]runtime.Port, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group != nil || c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	ports := make([]*Port, max(1, min(c.cfg.Workers, len(tasks))))
	for i := range ports {
		ports[i] = newPort(c, i)
	}
	g, err := newGroup(c, tasks, ports)
	if err != nil {
		return nil, err
	}
	c.group = g
	all := make([]runtime.Port, len(ports))
	for i, p := range ports {
		p.group = g
		all[i] = p
		c.work.Go(p.committer.run)
	}
	c.work.Go(g.purger.run)
	c.work.Go(func() { g.run(ctx) })
	return all, nil
}

// Observe returns a reader of its own, which needs no lease. It ends with the cluster.
func (c *Cluster) Observe() runtime.Observer { return newPort(c, observing) }

// observing stands for the number of a worker in a port that is none's.
const observing = -1

// Close leaves the group, ends what is under way and closes all connections. What is not committed stays uncommitted.
// Workers must not use their ports any more. Closing twice is fine.
func (c *Cluster) Close() error {
	var err error
	c.closing.Do(func() {
		c.cancel()
		hanging := time.AfterFunc(2*leaveWait, c.dialer.end) // a broker that does not answer must not hold it up
		c.work.Wait()
		hanging.Stop()
		c.dialer.end()
		c.admin.close()
		err = c.control.Close()
	})
	return err
}

// transactionalID names a worker's producer.
func (c *Cluster) transactionalID(worker int) string {
	if c.cfg.Guarantee != eos.ExactlyOnce {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d", c.cfg.App, c.cfg.ProcessID, worker)
}

// leader returns the address of a partition's leader as far as it is known.
func (c *Cluster) leader(tp processor.TopicPartition) (string, error) {
	b, err := c.control.Leader(tp.Topic, tp.Partition)
	if err != nil {
		return "", err
	}
	return b.Addr(), nil
}
