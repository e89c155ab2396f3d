package millrace

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/bolt"
)

// Guarantee is the processing guarantee of an application.
type Guarantee = eos.Guarantee

// The guarantees.
const (
	// ExactlyOnce commits outputs, changelogs and positions in one Kafka transaction. It is the default.
	ExactlyOnce = eos.ExactlyOnce
	// AtLeastOnce writes outputs and changelogs first and the positions afterwards: after a crash, records that were
	// processed but not committed are processed again on top of what they left behind.
	AtLeastOnce = eos.AtLeastOnce
)

// OffsetReset says where to start to read an input partition for which the group has no committed offset.
type OffsetReset uint8

// Where to start. Restoring a store never uses it.
const (
	Earliest OffsetReset = iota
	Latest
)

// Config configures an application. ApplicationID and Brokers are needed; the zero value of everything else is a default.
type Config struct {
	// ApplicationID names the consumer group and prefixes the internal topics, the transactional ids and the folder of
	// the state. All processes of an application use the same one. Kafka's rules for topic names apply.
	ApplicationID string
	// Brokers are host:port addresses to start from.
	Brokers []string
	// Configure, if set, changes the settings of every Kafka client that the application makes: TLS, SASL, dialer,
	// client id, protocol version. It is called several times.
	Configure func(*sarama.Config)

	// StateDir is the folder for local state; default is "millrace" in the system's temporary folder. Give each process
	// on a machine its own. What is lost here is restored from Kafka.
	StateDir string
	// Store is where keyed stores live: bolt.Opener{} (the default; files in StateDir) or memory.Opener{}.
	Store store.Opener

	// Guarantee is ExactlyOnce unless set.
	Guarantee Guarantee
	// CachingDisabled makes every table forward each of its updates at once, as topology.CachingDisabled does for one table; it
	// is Kafka Streams' statestore.cache.max.bytes=0. By default a table forwards the last update per key at the commit, so
	// that what its changes cause depends on when commits come.
	CachingDisabled bool
	// CommitInterval is the longest time between commits while there is work; default 100 ms. Applications commit earlier
	// when their input is drained or when much is staged.
	CommitInterval time.Duration
	// Workers is how many workers, each with a producer of its own, share the tasks of this process; default
	// runtime.GOMAXPROCS. There are never more than tasks. App.SetWorkers changes it.
	Workers int
	// Standbys is how many other processes follow the changelogs of each stateful task, so that one of them can take it over
	// at once: Kafka Streams' num.standby.replicas. They cost their memory, disk and network. When there are too few
	// processes, there are fewer. All processes should say the same.
	Standbys int
	// Rack says where this process runs, such as an availability zone. Standbys are then on processes in other racks, if
	// there are any.
	Rack string
	// MaxWarmups is how many replicas are read at a time in the whole application so that tasks can move to processes that
	// have less to do: Kafka Streams' max.warmup.replicas; default 2. A task goes on where it is until then.
	MaxWarmups int
	// AcceptableLag is how many changelog offsets a process may lack to take a task over at once: Kafka Streams'
	// acceptable.recovery.lag; default 10,000. Markers of transactions count.
	AcceptableLag int64
	// Errors says what happens to bad records; by default the application stops at one, except that null keys are skipped.
	Errors processor.ErrorPolicy
	// OffsetReset is Earliest unless set.
	OffsetReset OffsetReset
	// LostInput is RefuseLostInput unless set: records of an input were deleted before they were processed.
	LostInput LostInput
	// LostState is RefuseLostState unless set: a changelog does not hold what its store held, as when it was deleted.
	LostState LostState
	// MaxTaskIdle is how long a task that reads several partitions lets records wait for one that is empty, so that records
	// are taken in the order of their timestamps: Kafka Streams' max.task.idle.ms. At 0, the default, they wait only for what
	// is known to be on the broker; below 0 for nothing.
	MaxTaskIdle time.Duration

	// SessionTimeout is how long a process may be silent until others take its tasks; default 10 s. The broker has a say in
	// it: group.min.session.timeout.ms is 6 s by default.
	SessionTimeout time.Duration
	// MaxPollInterval is how long a worker may be busy with one record, or with whatever else a user's function does, until
	// the process gives up: Run commits what other workers have done, leaves the group, so that other processes take over, and
	// returns a *HungError. Default 5 min.
	MaxPollInterval time.Duration
	// TransactionTimeout is how long the broker keeps a silent transaction open; default 10 s.
	TransactionTimeout time.Duration
	// PurgeInterval is how often repartition topics are purged of what is committed, by DeleteRecords: Kafka Streams'
	// repartition.purge.interval.ms. Default 30 s; negative never. Without the right to delete a warning says so once.
	PurgeInterval time.Duration
	// ShutdownTimeout bounds the orderly end of Run; default 30 s. After it, what is not committed is dropped.
	ShutdownTimeout time.Duration
	// Compression of produced batches: "none" (the default), "lz4", "zstd", "snappy" or "gzip".
	Compression string

	// MaxRecordBytes bounds key, value and headers of a record that is written to a topic or a changelog; default 1 MiB, like
	// the Java producer's max.request.size and about the broker's default message.max.bytes. A larger one is an error of the record in work, to be treated as Errors
	// says, while one that the broker refuses stops the application. Topics with a higher max.message.bytes allow for more.
	MaxRecordBytes int
	// StagedBytes bounds, for each worker, what is written but not committed; default 16 MiB. The double can be held
	// while a commit is under way.
	StagedBytes int
	// FlushBytes is how much of a store is committed before it is written to its file; default 32 MiB.
	FlushBytes int
	// FlushInterval is how long a store goes without being written to its file; default 10 s. It bounds, with FlushBytes,
	// the part of the changelog that is replayed after a crash.
	FlushInterval time.Duration

	// RestoreBytes bounds what the restores of this process hold in memory until they write it to the stores' files, all
	// together; default 256 MiB. Keys are written in order, so the more is written at once the faster a large store is back.
	RestoreBytes int

	// Logger is slog.Default() unless set. Nothing is ever written to standard output.
	Logger *slog.Logger
	// OnRestoring, if set, is told how far a store is that is being restored: when it begins, at most every 100 ms while it
	// goes on, and when all is read. It may be called from several goroutines. See also App.Restoring.
	OnRestoring func(Restoring)
	// OnRestored, if set, is told of each store that was restored. It may be called from several goroutines.
	OnRestored func(Restored)
	// OnLoss, if set, is told of each loss that LostInput and LostState let pass, a *LostInputError or a *LostStateError. It
	// may be called from several goroutines.
	OnLoss func(error)
	// OnDropped, if set, is told of each bad record that Errors lets pass. It may be called from several goroutines.
	OnDropped func(*processor.RecordError, processor.Action)
	// OnLate, if set, is told of each record that came after a window of its was closed, once for each such window. It may be
	// called from several goroutines, and again for the same record if what it belongs to is not committed.
	OnLate func(processor.Late)
}

// Restored says how a store came back: Records were read from the changelog, from offset From up to To, not included.
type Restored struct {
	Task     processor.TaskID
	Store    string
	From, To int64
	Records  int64
}

// ErrConfig is wrapped by what New returns for a Config that cannot work.
var ErrConfig = errors.New("millrace: configuration")

var legalID = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,200}$`)

func (c Config) withDefaults() Config {
	set(&c.StateDir, filepath.Join(os.TempDir(), "millrace"))
	set(&c.CommitInterval, 100*time.Millisecond)
	set(&c.Workers, runtime.GOMAXPROCS(0))
	set(&c.MaxWarmups, 2)
	set(&c.AcceptableLag, 10_000)
	set(&c.SessionTimeout, 10*time.Second)
	set(&c.MaxPollInterval, 5*time.Minute)
	set(&c.TransactionTimeout, 10*time.Second)
	set(&c.PurgeInterval, 30*time.Second)
	set(&c.ShutdownTimeout, 30*time.Second)
	set(&c.Compression, "none")
	set(&c.MaxRecordBytes, 1<<20)
	set(&c.StagedBytes, 16<<20)
	set(&c.FlushBytes, 32<<20)
	set(&c.FlushInterval, 10*time.Second)
	set(&c.RestoreBytes, 256<<20)
	if c.Store == nil {
		c.Store = bolt.Opener{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// set gives a field its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every mistake at once.
func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
		}
	}
	check(legalID.MatchString(c.ApplicationID) && c.ApplicationID != "." && c.ApplicationID != "..",
		"ApplicationID %q: want 1 to 200 letters, digits, '.', '_' or '-'", c.ApplicationID)
	check(len(c.Brokers) > 0, "Brokers is empty: want host:port of at least one broker")
	check(c.Guarantee <= AtLeastOnce, "Guarantee %d is unknown", c.Guarantee)
	check(c.OffsetReset <= Latest, "OffsetReset %d is unknown", c.OffsetReset)
	check(c.LostInput <= LatestLostInput, "LostInput %d is unknown", c.LostInput)
	check(c.LostState <= EmptyLostState, "LostState %d is unknown", c.LostState)
	check(c.Workers > 0, "Workers is %d", c.Workers)
	check(c.Standbys >= 0, "Standbys is %d", c.Standbys)
	check(c.MaxWarmups > 0, "MaxWarmups is %d: want at least 1, or tasks could not move", c.MaxWarmups)
	check(c.AcceptableLag > 0, "AcceptableLag is %d", c.AcceptableLag)
	for name, d := range map[string]time.Duration{"CommitInterval": c.CommitInterval, "SessionTimeout": c.SessionTimeout, "MaxPollInterval": c.MaxPollInterval,
		"TransactionTimeout": c.TransactionTimeout, "ShutdownTimeout": c.ShutdownTimeout, "FlushInterval": c.FlushInterval} {
		check(d >= time.Millisecond, "%s is %v: want at least a millisecond", name, d)
	}
	check(c.StagedBytes > 0 && c.FlushBytes > 0 && c.RestoreBytes > 0 && c.MaxRecordBytes > 0, "StagedBytes, FlushBytes, RestoreBytes and MaxRecordBytes must be positive")
	if err := c.Errors.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Errors: %w", ErrConfig, err))
	}
	var codec sarama.CompressionCodec
	if err := codec.UnmarshalText([]byte(c.Compression)); err != nil {
		errs = append(errs, fmt.Errorf("%w: Compression %q: want none, lz4, zstd, snappy or gzip", ErrConfig, c.Compression))
	}
	return errors.Join(errs...)
}
