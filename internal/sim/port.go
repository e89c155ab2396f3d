package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// PortConfig is how a port behaves. The zero value of everything but ID is a default.
type PortConfig struct {
	// ID is the transactional id, and the member's name in the group. A process that comes back has the same one.
	ID        string
	Guarantee eos.Guarantee
	// CallsPerPoll is how many calls of the commit protocol are made in a Poll; 0 makes all of them.
	CallsPerPoll int
	// BatchRecords is the size of the largest fetched batch; default 500.
	BatchRecords int
	// Batches is how many batches of a partition a Poll fetches at most; default 1.
	Batches int
	// BufferBytes is how much of a partition may be delivered and not consumed; default 1 MiB.
	BufferBytes int
	// Hook, if set, is called at every Point. It may panic with a Crash.
	Hook func(Point)
	// Fault, if set, is asked before each call of the commit protocol.
	Fault func(eos.Kind) Fault
	// Skip, if set, is asked before a partition is fetched from: true leaves it to a later Poll.
	Skip func(processor.TopicPartition) bool
	// Later, if set, is asked whether background work is to be done in a later Poll instead of at once.
	Later func() bool
	// Stored, if set, returns up to which changelog offset a task's store is on the disk of this process.
	Stored func(task processor.TaskID, store string) (offset int64, ok bool)
	// SkipTail grants a task that the worker stands by for as if its changelogs ended where the worker has read them to: a
	// mistake, which a simulation should find.
	SkipTail bool
}

// Port is a worker's view of a cluster, in the place of a process of its own. Poll never waits.
type Port struct {
	cfg     PortConfig
	cluster *Cluster
	group   *Group
	member  *member
	held    map[processor.TaskID]*holding
	follows map[processor.TopicPartition]int64 // how far standbys have come
	reading map[processor.TopicPartition]*reader
	behind  []func() // background work to be done

	deaf       bool  // the process does not hear from the group
	generation int32 // the newest that it heard of
	stop       bool
	polls      int
	moved      bool // the latest Poll brought something

	committer
}

var _ runtime.Port = (*Port)(nil)

type reader struct {
	at          int64
	outstanding int // bytes delivered and not consumed
}

// NewPort makes a member of the group and its producer. What its transactional id left open is aborted before the first
// task is granted.
func NewPort(g *Group, cfg PortConfig) *Port {
	cfg.BatchRecords = cmp.Or(cfg.BatchRecords, 500)
	cfg.Batches = cmp.Or(cfg.Batches, 1)
	cfg.BufferBytes = cmp.Or(cfg.BufferBytes, 1<<20)
	p := &Port{cfg: cfg, cluster: g.cluster, group: g, held: map[processor.TaskID]*holding{},
		follows: map[processor.TopicPartition]int64{}, reading: map[processor.TopicPartition]*reader{}}
	p.member = g.join(cfg.ID, p)
	p.protocol.Guarantee = cfg.Guarantee
	if cfg.Guarantee == eos.ExactlyOnce {
		p.protocol.Fence()
		p.fencing = true
	}
	return p
}

func (p *Port) at(point Point) {
	if p.cfg.Hook != nil {
		p.cfg.Hook(point)
	}
}

// Poll implements runtime.Port. It does not wait.
func (p *Port) Poll(time.Duration) runtime.Events {
	p.at(BeforePoll)
	var e runtime.Events
	p.polls++
	p.advance(&e)
	p.work()
	p.hear(&e)
	p.fetch(&e)
	e.Stop, p.stop = p.stop, false
	p.moved = e.Commit != nil || e.Stop || len(e.Fetched)+len(e.Failed)+len(e.Granted)+len(e.Lost)+len(e.Revoked) > 0
	p.at(AfterPoll)
	return e
}

// Busy reports whether the latest Poll brought anything, or a commit or background work is under way.
func (p *Port) Busy() bool { return p.moved || p.active || p.fencing || len(p.behind) > 0 }

// Stop makes the next Poll tell the worker to end.
func (p *Port) Stop() { p.stop = true }

// Deaf cuts the port off from the group, or lets it hear again. Meanwhile it keeps the generation it knows and learns
// nothing of tasks won or lost, as a process that was paused and has not yet sent a heartbeat.
func (p *Port) Deaf(deaf bool) { p.deaf = deaf }

// Expel throws the port's member out of the group, as when its session timed out. The port learns of it when it hears
// again, and joins anew.
func (p *Port) Expel() { p.group.remove(p.member) }

// Leave takes the member out of the group for good, after the worker's end or death.
func (p *Port) Leave() {
	p.deaf = true
	p.group.remove(p.member)
}

// Fetch implements runtime.Reader.
func (p *Port) Fetch(tp processor.TopicPartition, offset int64) {
	p.at(BeforeStart)
	p.reading[tp] = &reader{at: offset}
}

// StopFetch implements runtime.Reader.
func (p *Port) StopFetch(tp processor.TopicPartition) { delete(p.reading, tp) }

// Consumed implements runtime.Reader.
func (p *Port) Consumed(tp processor.TopicPartition, bytes int) {
	if r := p.reading[tp]; r != nil {
		r.outstanding = max(0, r.outstanding-bytes)
	}
	p.at(BatchDone)
}

// fetch reads on in every partition, in the order of their names.
func (p *Port) fetch(e *runtime.Events) {
	for _, tp := range slices.SortedFunc(maps.Keys(p.reading), comparePartitions) {
		for range p.cfg.Batches {
			if !p.fetchFrom(tp, e) {
				break
			}
		}
	}
}

// fetchFrom reads a batch of a partition, and reports whether it got on.
func (p *Port) fetchFrom(tp processor.TopicPartition, e *runtime.Events) bool {
	r := p.reading[tp]
	if r.outstanding >= p.cfg.BufferBytes || p.cfg.Skip != nil && p.cfg.Skip(tp) {
		return false
	}
	records, next, err := p.cluster.Read(tp, r.at, p.cfg.BatchRecords)
	if err != nil {
		delete(p.reading, tp)
		e.Failed = append(e.Failed, runtime.FetchFailed{TopicPartition: tp, Offset: r.at, Err: err})
		return false
	}
	if next == r.at {
		return false
	}
	r.at = next
	bytes := 0
	for _, raw := range records {
		bytes += 1 + len(raw.Key) + len(raw.Value)
	}
	r.outstanding += bytes
	e.Fetched = append(e.Fetched, runtime.Fetched{TopicPartition: tp, Records: records, Next: next, Bytes: bytes, More: p.more(tp, next)})
	return true
}

// more reports whether there is a committed record at or behind an offset.
func (p *Port) more(tp processor.TopicPartition, offset int64) bool {
	records, _, err := p.cluster.Read(tp, offset, 1)
	return err == nil && len(records) > 0
}

func comparePartitions(a, b processor.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// Background implements runtime.Port.
func (p *Port) Background(fn func()) {
	if p.cfg.Later != nil && p.cfg.Later() {
		p.behind = append(p.behind, fn)
		return
	}
	fn()
}

// work does the background work that was put off, unless it is put off again.
func (p *Port) work() {
	todo := p.behind
	p.behind = nil
	for _, fn := range todo {
		p.Background(fn)
	}
}
