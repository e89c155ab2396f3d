package kafka

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
)

// OffsetReset says where to start to read an input partition that has no committed offset.
type OffsetReset uint8

// Where to start.
const (
	Earliest OffsetReset = iota
	Latest
)

// Config says which cluster to join, and how. App, Brokers and ProcessID are needed; zero values elsewhere are defaults.
type Config struct {
	App     string   // consumer group, prefix of the transactional ids
	Brokers []string // host:port
	// Configure, if set, may change the settings of every client: TLS, SASL, dialer, version. It is called several times.
	Configure func(*sarama.Config)
	Guarantee eos.Guarantee
	// ProcessID is this process's static id in the group and part of its transactional ids. It survives a restart.
	ProcessID string
	Workers   int // default 1

	SessionTimeout     time.Duration // a silent process loses its leases after this; default 10 s
	RebalanceTimeout   time.Duration // a process has this long to give a lease back; default 60 s
	HeartbeatInterval  time.Duration // default a tenth of SessionTimeout, at most 300 ms
	TransactionTimeout time.Duration // the broker aborts a transaction that is open for longer; default 10 s
	UnknownTopicAfter  time.Duration // a partition that stays unknown for so long is an error; default 15 s

	OffsetReset OffsetReset
	LostInput   LostInput
	LostState   LostState
	// LossAfter is how long what looks like a loss is looked at again; default 1 s.
	LossAfter time.Duration
	// Lost, if set, is told of each loss that LostInput and LostState let pass.
	Lost func(error)

	// PurgeInterval is how often repartition topics are purged; default 30 s, negative never.
	PurgeInterval time.Duration

	Standbys      int    // replicas of each stateful task on other members
	Rack          string // where this process runs, if standbys are to be elsewhere
	MaxWarmups    int    // replicas in the group that are read so that a task can move; default 2
	AcceptableLag int64  // changelog offsets that a member may lack to take a task over at once; default 10,000
	// Stored, if set, returns up to where a store on disk holds its changelog, as far as that is known.
	Stored func(task processor.TaskID, store string) (offset int64, ok bool)

	MaxFetchBytes int // asked for of one partition at once; default 1 MiB
	BufferBytes   int // fetched but not consumed bytes of one partition above which it is not read; default 4 MiB
	// BatchBytes bounds a produced batch before compression; default 900,000, below the broker's default message.max.bytes.
	BatchBytes  int
	Compression string // none (default), lz4, zstd, snappy or gzip

	Logger *slog.Logger // default slog.Default()
}

// Settings that nobody needs to change.
const (
	defaultBatchBytes = 900_000
	// requestBytes bounds one produce request, far below the broker's socket.request.max.bytes.
	requestBytes = 16 << 20
	// responseBytes bounds one fetch response.
	responseBytes = 32 << 20
	// fetchWait is how long a broker may hold a fetch for data to come.
	fetchWait = 100 * time.Millisecond
	// heldBackWait is the same while a partition is left out because its reader is behind.
	heldBackWait = 5 * time.Millisecond
	// produceTimeout is how long a broker may wait for its replicas.
	produceTimeout = 10 * time.Second
	// metadataAge is how old the partition counts that a group leader watches may be.
	metadataAge = 30 * time.Second
)

func (c Config) withDefaults() Config {
	set(&c.Workers, 1)
	set(&c.SessionTimeout, 10*time.Second)
	set(&c.RebalanceTimeout, 60*time.Second)
	set(&c.HeartbeatInterval, min(c.SessionTimeout/10, 300*time.Millisecond))
	set(&c.TransactionTimeout, 10*time.Second)
	set(&c.UnknownTopicAfter, 15*time.Second)
	set(&c.MaxWarmups, 2)
	set(&c.AcceptableLag, 10_000)
	set(&c.LossAfter, time.Second)
	set(&c.PurgeInterval, 30*time.Second)
	set(&c.MaxFetchBytes, 1<<20)
	set(&c.BufferBytes, 4<<20)
	set(&c.BatchBytes, defaultBatchBytes)
	set(&c.Compression, "none")
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("app", c.App)
	return c
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) codec() (sarama.CompressionCodec, error) {
	var codec sarama.CompressionCodec
	if err := codec.UnmarshalText([]byte(c.Compression)); err != nil {
		return 0, fmt.Errorf("kafka: compression %q: %w", c.Compression, err)
	}
	return codec, nil
}

// client returns the settings that all connections share.
func (c Config) client() *sarama.Config {
	s := sarama.NewConfig()
	s.ClientID = c.App + "-" + c.ProcessID
	s.Version = sarama.V4_1_0_0
	s.MetricRegistry = nowhere{}
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.Full = false
	s.Metadata.RefreshFrequency = metadataAge
	s.Metadata.Retry.Max = 3
	s.Metadata.Retry.Backoff = 100 * time.Millisecond
	s.Net.DialTimeout = 5 * time.Second
	s.Net.ReadTimeout = produceTimeout + 5*time.Second
	s.Net.WriteTimeout = 10 * time.Second
	s.Admin.Timeout = 10 * time.Second
	if c.Configure != nil {
		c.Configure(s)
	}
	return s
}

// membership returns the settings of the group's own client. The group's offsets and fetches play no part: claims are
// paused at once, and whatever they would start from must not be able to fail.
func (c Config) membership(strategy sarama.BalanceStrategy) *sarama.Config {
	s := c.client()
	s.ChannelBufferSize = 0
	s.Net.ReadTimeout = c.RebalanceTimeout + 10*time.Second
	s.Metadata.Retry.Max = max(int(c.SessionTimeout/retryPause), 1)
	s.Metadata.Retry.Backoff = retryPause
	s.Consumer.Fetch.Default = 1
	s.Consumer.MaxWaitTime = fetchWait
	s.Consumer.IsolationLevel = sarama.ReadUncommitted
	s.Consumer.Return.Errors = true
	s.Consumer.Offsets.AutoCommit.Enable = false
	s.Consumer.Offsets.Initial = sarama.OffsetNewest
	s.Consumer.Group.ResetInvalidOffsets = true
	s.Consumer.Group.InstanceId = c.ProcessID
	s.Consumer.Group.Session.Timeout = c.SessionTimeout
	s.Consumer.Group.Heartbeat.Interval = c.HeartbeatInterval
	s.Consumer.Group.Rebalance.Timeout = c.RebalanceTimeout
	s.Consumer.Group.Rebalance.Retry.Backoff = retryPause
	s.Consumer.Group.Rebalance.Strategy = nil
	s.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	return s
}
