package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/processor"
)

// purgeTimeout is how long a broker may wait for its replicas to follow.
const purgeTimeout = 10 * time.Second

// purger deletes what this process has committed of the application's own topics, never beyond: nobody reads it again.
type purger struct {
	cluster *Cluster
	topics  map[string]bool // those to be purged; fixed

	mu  sync.Mutex
	due map[processor.TopicPartition]int64 // committed since they were purged

	lines   *lines          // the goroutine's own, as deleting may wait for replicas
	refused map[string]bool // topics that it was refused for, which was logged
}

func newPurger(c *Cluster, tasks []TaskInfo) *purger {
	p := &purger{cluster: c, topics: map[string]bool{}, due: map[processor.TopicPartition]int64{}, lines: newLines(c.conf), refused: map[string]bool{}}
	for _, t := range tasks {
		for _, topic := range t.Repartition {
			p.topics[topic] = true
		}
	}
	return p
}

// committed notes positions that are committed for certain.
func (p *purger) committed(positions []processor.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range positions {
		if p.topics[c.Topic] && c.Offset > 0 {
			p.due[c.TopicPartition] = c.Offset
		}
	}
}

// run purges at intervals.
func (p *purger) run() {
	defer p.lines.close()
	if len(p.topics) == 0 || p.cluster.cfg.PurgeInterval < 0 {
		return
	}
	for pause(p.cluster.ctx, p.cluster.cfg.PurgeInterval) {
		p.purge(p.cluster.ctx)
	}
}

// purge deletes what is due, in one request to each leader. What a broker cannot do now is due again.
func (p *purger) purge(ctx context.Context) {
	p.mu.Lock()
	due := p.due
	p.due = map[processor.TopicPartition]int64{}
	p.mu.Unlock()
	byLeader := map[string]map[processor.TopicPartition]int64{}
	for tp, offset := range due {
		addr, err := p.cluster.leader(tp)
		if err != nil {
			p.again(tp, offset)
			continue
		}
		if byLeader[addr] == nil {
			byLeader[addr] = map[processor.TopicPartition]int64{}
		}
		byLeader[addr][tp] = offset
	}
	for addr, offsets := range byLeader {
		if ctx.Err() == nil {
			p.purgeAt(addr, offsets)
		}
	}
}

func (p *purger) purgeAt(addr string, offsets map[processor.TopicPartition]int64) {
	req := &sarama.DeleteRecordsRequest{Version: 1, Timeout: purgeTimeout, Topics: map[string]*sarama.DeleteRecordsRequestTopic{}}
	for tp, offset := range offsets {
		if req.Topics[tp.Topic] == nil {
			req.Topics[tp.Topic] = &sarama.DeleteRecordsRequestTopic{PartitionOffsets: map[int32]int64{}}
		}
		req.Topics[tp.Topic].PartitionOffsets[tp.Partition] = offset
	}
	b, err := p.lines.to(addr)
	var resp *sarama.DeleteRecordsResponse
	if err == nil {
		if resp, err = b.DeleteRecords(req); err != nil {
			p.lines.drop(b)
		}
	}
	for tp, offset := range offsets {
		if err := purged(resp, tp, err); err != nil {
			p.failed(tp, offset, err)
		}
	}
}

// purged returns what the answer says of a partition.
func purged(resp *sarama.DeleteRecordsResponse, tp processor.TopicPartition, err error) error {
	if err != nil {
		return err
	}
	if topic := resp.Topics[tp.Topic]; topic != nil && topic.Partitions[tp.Partition] != nil {
		return code(topic.Partitions[tp.Partition].Err)
	}
	return errNoAnswer
}

// failed takes note of a partition that could not be purged. That is no reason to stop: it costs space, nothing else.
func (p *purger) failed(tp processor.TopicPartition, offset int64, err error) {
	reason, answered := refusal(err)
	if !answered || reason == sarama.ErrNotLeaderForPartition || reason == sarama.ErrLeaderNotAvailable || reason == sarama.ErrRequestTimedOut {
		_ = p.cluster.control.RefreshMetadata(tp.Topic) // the next try finds out
		p.again(tp, offset)
		return
	}
	level := slog.LevelDebug
	if !p.refused[tp.Topic] {
		p.refused[tp.Topic] = true
		level = slog.LevelWarn
	}
	p.cluster.cfg.Logger.Log(p.cluster.ctx, level, "a repartition topic cannot be purged of what is committed, so it will keep growing; this is said once",
		"partition", tp.String(), "offset", offset, "error", err)
}

// again makes a partition due, unless more of it is by now.
func (p *purger) again(tp processor.TopicPartition, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due[tp] = max(p.due[tp], offset)
}
