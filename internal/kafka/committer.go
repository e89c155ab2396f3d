package kafka

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/eos"
	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// committer makes one worker's commits durable, one after the other, in a goroutine of its own. It makes the calls that
// package eos asks for.
type committer struct {
	cluster *Cluster
	port    *Port
	log     *slog.Logger
	id      string // transactional id, empty under at-least-once
	work    chan job

	// The rest is the goroutine's own.
	tx       eos.Transaction
	lines    *lines
	producer *producer
	plan     *plan
	job      job
	asked    bool      // EndTxn has been sent
	unknown  time.Time // since when a topic of this commit is unknown, zero if none is
	trouble  trouble   // calls that have to be made again for long
}

// job is a commit, and the number of losses that its worker had known when it began.
type job struct {
	commit processor.Commit
	losses int64
}

// worthAWord is how long a commit may take to get through without a word: refusals for a moment are daily life.
const worthAWord = 2 * time.Second

func newCommitter(c *Cluster, p *Port) *committer {
	id := c.transactionalID(p.worker)
	log := c.cfg.Logger.With("worker", p.worker)
	return &committer{
		cluster: c, port: p, id: id, log: log, work: make(chan job, 1),
		trouble: trouble{log: log, what: "a commit does not get through, trying again", over: "commits get through again", after: worthAWord},
		tx:      eos.Transaction{Guarantee: c.cfg.Guarantee}, lines: newLines(c.conf), producer: plainProducer(), plan: newPlan(c.cfg.BatchBytes),
	}
}

// run aborts what a predecessor of the same transactional id left open, then makes commits until the cluster is closed.
func (k *committer) run() {
	defer k.lines.close()
	ctx := k.cluster.ctx
	if k.id != "" {
		k.tx.Fence()
		k.drive(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			k.refuse()
			return
		case <-k.port.done:
			return
		case k.job = <-k.work:
			k.commit(ctx)
		}
	}
}

// refuse ends a commit that has not begun.
func (k *committer) refuse() {
	select {
	case <-k.work:
		k.done(&runtime.CommitDone{Result: eos.Result{Outcome: eos.Aborted, Err: ErrClosed}})
	default:
	}
}

func (k *committer) done(d *runtime.CommitDone) {
	k.port.post(func(e *runtime.Events) { e.Commit = d })
}

// commit drives one commit to its end and tells the worker.
func (k *committer) commit(ctx context.Context) {
	k.plan.begin(&k.job.commit)
	k.asked, k.unknown = false, time.Time{}
	k.tx.Begin(&k.job.commit)
	k.drive(ctx)
	done := &runtime.CommitDone{Result: k.tx.Result()}
	if done.Outcome == eos.Committed {
		k.port.group.committed(k.job.commit.Positions)
		done.Ends = k.ends(ctx)
	}
	k.plan.clear()
	k.job = job{}
	k.done(done)
}

// drive makes call after call until there is none left.
func (k *committer) drive(ctx context.Context) {
	for tries := 0; ; tries++ {
		call := k.tx.Next()
		if call.Kind == eos.Done {
			return
		}
		if !pause(ctx, call.Delay) {
			k.tx.Cancel(ErrClosed)
			return
		}
		verdict, err := k.make(call.Kind)
		k.report(call.Kind, verdict, err)
		k.tx.Answer(verdict, err)
	}
}

func (k *committer) report(kind eos.Kind, v eos.Verdict, err error) {
	switch v {
	case eos.OK:
		k.trouble.left(k)
	case eos.Retry, eos.NoAnswer:
		k.trouble.has(k, err, "call", callNames[kind])
		k.log.Debug("a call of a commit has to be made again", "call", callNames[kind], "error", err)
	case eos.Lost:
		k.log.Warn("a transaction is lost", "call", callNames[kind], "error", err)
	}
}

var callNames = map[eos.Kind]string{
	eos.InitProducer: "InitProducerId", eos.AddPartitions: "AddPartitionsToTxn", eos.Produce: "Produce",
	eos.AddOffsets: "AddOffsetsToTxn", eos.CommitOffsets: "commit of offsets", eos.EndCommit: "EndTxn",
}

// make makes one call.
func (k *committer) make(kind eos.Kind) (eos.Verdict, error) {
	switch kind {
	case eos.InitProducer:
		err := k.initProducer()
		return judge(kind, err), err
	case eos.AddPartitions:
		return k.addPartitions()
	case eos.Produce:
		return k.produce()
	case eos.AddOffsets:
		err := k.addOffsets()
		return judge(kind, err), err
	case eos.CommitOffsets:
		return k.commitOffsets()
	case eos.EndCommit:
		return k.endCommit()
	}
	return eos.Broken, errors.New("kafka: unknown call")
}

// bounded turns a retry because of an unknown topic into a failure when the topic has been unknown for too long.
func (k *committer) bounded(tp processor.TopicPartition, v eos.Verdict, err error) (eos.Verdict, error) {
	if code, _ := refusal(err); code != sarama.ErrUnknownTopicOrPartition {
		return v, err
	}
	if k.unknown.IsZero() {
		k.unknown = time.Now()
	}
	// A transaction that times out in the meantime would start over, and never learn.
	if time.Since(k.unknown) >= min(k.cluster.cfg.UnknownTopicAfter, k.cluster.cfg.TransactionTimeout/2) {
		return eos.Broken, &UnknownTopicError{tp}
	}
	return v, err
}
