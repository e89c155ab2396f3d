package testdriver

import (
	"log/slog"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// Option is an option of New and Open.
type Option func(*config)

type config struct {
	app          string
	partitions   map[string]int32
	fallback     int32 // partitions
	start        time.Time
	cached       bool
	manual       bool
	expectErrors bool
	latest       bool
	guarantee    eos.Guarantee
	policy       processor.ErrorPolicy
	opener       store.Opener
	stateDir     string
	logger       *slog.Logger
}

// What the loop of a driver is set to. The clock stands still between calls, so that commits come when the input is drained.
const (
	commitInterval = 100 * time.Millisecond
	stagedBytes    = 32 << 20
	restless       = 1_000_000 // turns
)

func defaults() config {
	return config{
		app: "app", partitions: map[string]int32{}, fallback: 1, start: time.UnixMilli(0).UTC(),
		opener: memory.Opener{}, logger: slog.New(slog.DiscardHandler),
	}
}

// App sets the application's id, which prefixes the names of internal topics; default is "app".
func App(id string) Option { return func(c *config) { c.app = id } }

// Partitions sets the number of partitions of a topic: one of the topology's, or any other, which the test can then read
// and write. Repartition and changelog topics are sized by the topology itself.
func Partitions(topic string, n int32) Option {
	return func(c *config) { c.partitions[topic] = n }
}

// DefaultPartitions sets the number of partitions of the topics that [Partitions] does not name; default is 1.
func DefaultPartitions(n int32) Option { return func(c *config) { c.fallback = n } }

// StartTime sets the clock; default is 1970-01-01 UTC.
func StartTime(at time.Time) Option { return func(c *config) { c.start = at } }

// Cached makes tables forward a row once per commit, as in the application. A commit comes when all that was sent is
// processed: records that are to share one are sent by one call of SendAll.
func Cached() Option { return func(c *config) { c.cached = true } }

// Manual makes Send and Advance only do that: nothing runs until Turn or Settle.
func Manual() Option { return func(c *config) { c.manual = true } }

// ExpectErrors makes failures go to [Driver.Err] instead of failing the test.
func ExpectErrors() Option { return func(c *config) { c.expectErrors = true } }

// Latest makes a partition that was never committed be read from its end, as with the application's offset reset.
func Latest() Option { return func(c *config) { c.latest = true } }

// Guarantee sets the processing guarantee; default is exactly-once.
func Guarantee(g eos.Guarantee) Option { return func(c *config) { c.guarantee = g } }

// Errors sets the error policy. Its dead-letter topic is made with the others.
func Errors(p processor.ErrorPolicy) Option { return func(c *config) { c.policy = p } }

// Backend sets where stores live; default is memory.
func Backend(o store.Opener) Option { return func(c *config) { c.opener = o } }

// StateDir sets the folder of a durable backend. Default is a temporary one that is removed with the driver.
func StateDir(dir string) Option { return func(c *config) { c.stateDir = dir } }

// Logger sets where the loop logs to; default is nowhere.
func Logger(l *slog.Logger) Option { return func(c *config) { c.logger = l } }
