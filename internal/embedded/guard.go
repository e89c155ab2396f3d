package embedded

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// guard watches the requests of a broker that keeps its log, for the two after which a restart could be wrong.
func guard(c *kfake.Cluster, d *directory) {
	intents := newIntents(d)
	c.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.EndTxnRequest)
		if !req.Commit {
			return nil, nil, false
		}
		if err := intents.record(req.ProducerID, req.ProducerEpoch); err != nil {
			c.KeepControl()
			return nil, fmt.Errorf("embedded: record the intent to commit: %w", err), true // hangs up on the client
		}
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.DeleteRecords), func(r kmsg.Request) (kmsg.Response, error, bool) {
		spareLast(c, r.(*kmsg.DeleteRecordsRequest))
		return nil, nil, false
	})
}

// spareLast keeps the last record of each partition from being deleted. kfake knows a partition's end by its last batch
// only: after a restart, a partition without any would begin at offset 0 again, behind its readers' offsets.
func spareLast(c *kfake.Cluster, req *kmsg.DeleteRecordsRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			info := c.PartitionInfo(t.Topic, p.Partition)
			if info == nil || info.HighWatermark == 0 {
				continue
			}
			if p.Offset == -1 || p.Offset == info.HighWatermark {
				p.Offset = info.HighWatermark - 1
			}
		}
	}
}
