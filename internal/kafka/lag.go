package kafka

import (
	"context"

	"github.com/millrace-streams/millrace/processor"
)

// Lag returns how many offsets of the partitions lie between the group's committed position, or where reading begins if
// there is none, and the high watermark. The positions are stable ones: a commit under way is waited for.
//
// The positions are asked for before the ends. So 0 means that there was a moment at which all partitions were committed up
// to their ends: had one been written later by the reader of another, its end would be higher.
func (c *Cluster) Lag(ctx context.Context, partitions []processor.TopicPartition) (int64, error) {
	positions, err := c.stableOffsets(ctx, partitions)
	if err != nil {
		return 0, err
	}
	ends, err := c.Ranges(ctx, partitions)
	if err != nil {
		return 0, err
	}
	lag := int64(0)
	for _, tp := range partitions {
		at := max(positions[tp], ends[tp].Start)
		if positions[tp] < 0 && c.cfg.OffsetReset == Latest {
			at = ends[tp].End // nothing before it will ever be read
		}
		lag += max(0, ends[tp].End-at)
	}
	return lag, nil
}

// stableOffsets returns the committed offsets, -1 where there is none, trying again until all are known.
func (c *Cluster) stableOffsets(ctx context.Context, partitions []processor.TopicPartition) (map[processor.TopicPartition]int64, error) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		offsets, err := c.committedOffsets(partitions)
		known := map[processor.TopicPartition]int64{}
		for tp, o := range offsets {
			if err == nil {
				err = o.err
			}
			known[tp] = o.offset
		}
		if err == nil {
			return known, nil
		}
		if !pause(ctx, wait) {
			return nil, err
		}
	}
}
