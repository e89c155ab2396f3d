package kafka

import (
	"math"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/changelog"
	"github.com/millrace-streams/millrace/processor"
)

// Bytes that a record takes on the wire beside keys and values, estimated from above.
const (
	recordOverhead = 16
	headerOverhead = 8
	batchOverhead  = 70
)

// latest is the last millisecond that sarama can write, in the year 2262. It cannot write what is before 1970 either.
const latest = math.MaxInt64 / int64(time.Millisecond)

// pieceRecords is how many records of a commit become the client's at a time, and are sent before the next ones are taken:
// the memory for them stays small, and near the processor.
const pieceRecords = 32 << 10

// plan is a commit's records in batches, by partition, a piece at a time. It is used again for the next commit.
type plan struct {
	batchBytes, pieceRecords int

	topics map[string]*topicPlan
	last   *topicPlan
	parts  []*part // of this commit, in the order in which they are first touched

	commit       *processor.Commit
	chunk, write int // the next of its records, and of its write sets, to be taken
	slab         []sarama.Record
}

type topicPlan struct {
	name  string
	parts []*part // by partition, nil where nothing was written yet
}

// part is what a commit writes to one partition.
type part struct {
	processor.TopicPartition
	records []*sarama.Record
	cuts    []cut
	batches []*sarama.RecordBatch // not acknowledged; the first is the one to send
	end     int64                 // behind the last acknowledged record
	used    bool
}

// cut is where a batch begins.
type cut struct {
	record     int
	bytes      int
	first, max int64 // timestamps
}

func newPlan(batchBytes int) *plan {
	return &plan{batchBytes: batchBytes, pieceRecords: pieceRecords, topics: map[string]*topicPlan{}}
}

// begin takes up a commit, which must not change until clear, and finds out which partitions it writes to. Those without a
// record are no part of it: what a store removes by its retention, say, is not told to its changelog.
func (p *plan) begin(c *processor.Commit) {
	p.commit = c
	for r := range c.Outputs() {
		p.use(r.Topic, r.Partition)
	}
	for _, w := range c.Writes {
		if w.Set.Mirrors() {
			p.use(w.Changelog.Topic, w.Changelog.Partition)
		}
	}
}

func (p *plan) use(topic string, partition int32) {
	if x := p.part(topic, partition); !x.used {
		x.used = true
		p.parts = append(p.parts, x)
	}
}

// next makes batches of the next records, when those before are acknowledged. It reports whether there are any.
func (p *plan) next(by *producer, codec sarama.CompressionCodec) bool {
	p.release()
	p.fill()
	p.seal(by, codec)
	return len(p.slab) > 0
}

// fill takes a piece: whole chunks of records, and then whole write sets.
func (p *plan) fill() {
	c := p.commit
	chunk, write, n := p.chunk, p.write, 0
	fits := func(more int) bool {
		if n > 0 && n+more > p.pieceRecords {
			return false
		}
		n += more
		return true
	}
	for p.chunk < len(c.Records) && fits(len(c.Records[p.chunk])) {
		p.chunk++
	}
	for p.chunk == len(c.Records) && p.write < len(c.Writes) && fits(changelog.Count(c.Writes[p.write].Set)) {
		p.write++
	}
	if cap(p.slab) < n { // it must not grow: the parts point into it
		p.slab = make([]sarama.Record, 0, max(n, min(n+n/4, p.pieceRecords)))
	}
	for _, records := range c.Records[chunk:p.chunk] {
		for i := range records {
			r := &records[i]
			p.add(p.part(r.Topic, r.Partition), r.Key, r.Value, r.Timestamp, r.Headers)
		}
	}
	for _, w := range c.Writes[write:p.write] {
		part := p.part(w.Changelog.Topic, w.Changelog.Partition)
		for r := range changelog.Records(w.Set) {
			p.add(part, r.Key, r.Value, r.Timestamp, r.Headers)
		}
	}
}

func (p *plan) part(topic string, partition int32) *part {
	t := p.last
	if t == nil || t.name != topic {
		if t = p.topics[topic]; t == nil {
			t = &topicPlan{name: topic}
			p.topics[topic] = t
		}
		p.last = t
	}
	if missing := int(partition) + 1 - len(t.parts); missing > 0 {
		t.parts = append(t.parts, make([]*part, missing)...)
	}
	x := t.parts[partition]
	if x == nil {
		x = &part{TopicPartition: processor.TopicPartition{Topic: topic, Partition: partition}}
		t.parts[partition] = x
	}
	return x
}

// add takes a record.
func (p *plan) add(x *part, key, value []byte, ts int64, headers []processor.Header) {
	size := len(key) + len(value) + recordOverhead
	for i := range headers {
		size += len(headers[i].Key) + len(headers[i].Value) + headerOverhead
	}
	ts = min(max(ts, 0), latest)
	if n := len(x.cuts); n == 0 || x.cuts[n-1].bytes+size > p.batchBytes {
		x.cuts = append(x.cuts, cut{record: len(x.records), bytes: batchOverhead, first: ts, max: ts})
	}
	c := &x.cuts[len(x.cuts)-1]
	c.bytes += size
	c.max = max(c.max, ts)
	p.slab = append(p.slab, sarama.Record{
		Key: key, Value: value, OffsetDelta: int64(len(x.records) - c.record), TimestampDelta: time.Duration(ts-c.first) * time.Millisecond,
	})
	r := &p.slab[len(p.slab)-1]
	if len(headers) > 0 {
		r.Headers = recordHeaders(headers)
	}
	x.records = append(x.records, r)
}

func recordHeaders(headers []processor.Header) []*sarama.RecordHeader {
	hs := make([]sarama.RecordHeader, len(headers))
	refs := make([]*sarama.RecordHeader, len(headers))
	for i, h := range headers {
		hs[i] = sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value}
		refs[i] = &hs[i]
	}
	return refs
}

// producer is what a batch says about who wrote it. The zero sequence map begins each epoch.
type producer struct {
	id            int64
	epoch         int16
	transactional bool
	next          map[processor.TopicPartition]int32
}

// plainProducer is a producer that is neither idempotent nor transactional.
func plainProducer() *producer { return &producer{id: -1, epoch: -1} }

// sequence takes the next n sequence numbers of a partition and returns the first.
func (p *producer) sequence(tp processor.TopicPartition, n int) int32 {
	if p.id < 0 {
		return -1
	}
	first := p.next[tp]
	p.next[tp] = after(first, n)
	return first
}

// after returns the sequence number that follows n records. They wrap as Kafka's do.
func after(first int32, n int) int32 { return int32((int64(first) + int64(n)) & math.MaxInt32) }

// seal cuts the batches and numbers them.
func (p *plan) seal(by *producer, codec sarama.CompressionCodec) {
	for _, x := range p.parts {
		for i, c := range x.cuts {
			to := len(x.records)
			if i+1 < len(x.cuts) {
				to = x.cuts[i+1].record
			}
			x.batches = append(x.batches, &sarama.RecordBatch{
				Version: 2, Codec: codec, CompressionLevel: sarama.CompressionLevelDefault,
				FirstTimestamp: time.UnixMilli(c.first), MaxTimestamp: time.UnixMilli(c.max),
				ProducerID: by.id, ProducerEpoch: by.epoch, IsTransactional: by.transactional,
				FirstSequence: by.sequence(x.TopicPartition, to-c.record),
				Records:       x.records[c.record:to], LastOffsetDelta: int32(to - c.record - 1),
			})
		}
	}
}

// release forgets a piece, and every reference to its bytes.
func (p *plan) release() {
	clear(p.slab)
	p.slab = p.slab[:0]
	for _, x := range p.parts {
		clear(x.records)
		clear(x.batches)
		x.records, x.batches, x.cuts = x.records[:0], x.batches[:0], x.cuts[:0]
	}
}

// clear forgets the commit.
func (p *plan) clear() {
	p.release()
	for _, x := range p.parts {
		x.end, x.used = 0, false
	}
	p.parts, p.commit, p.chunk, p.write = p.parts[:0], nil, 0, 0
}
