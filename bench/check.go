package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace/internal/topicread"
)

// check reads a run's output as committed and compares the last value of each key with the table that the input makes.
func check(ctx context.Context, j job, want []int64) error {
	got := make([]int64, len(want))
	err := admin(j.Brokers, func(client sarama.Client, _ sarama.ClusterAdmin) error {
		if err := until(ctx, func() error { return decided(ctx, client, j.Out) }); err != nil {
			return err
		}
		return topicread.Committed(ctx, client, j.Out, func(r topicread.Record) error {
			n, err := number(r.Key)
			if err != nil {
				return err
			}
			if n >= len(got) || len(r.Value) != 8 {
				return fmt.Errorf("record %s-%d@%d is no count of this input", j.Out, r.Partition, r.Offset)
			}
			got[n] = int64(binary.BigEndian.Uint64(r.Value))
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	wrong, first := 0, -1
	for n := range want {
		if got[n] != want[n] {
			if wrong++; first < 0 {
				first = n
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("wrong table: %d of %d keys, the first is %s: %d instead of %d", wrong, len(want), word(first), got[first], want[first])
	}
	return nil
}

// decided returns nil when no transaction is open in the topic: the markers of the last one come after its end.
func decided(ctx context.Context, client sarama.Client, topic string) error {
	all, err := ends(client, topic)
	if err != nil {
		return err
	}
	for p, end := range all {
		stable, err := topicread.LastStableOffset(ctx, client, topic, int32(p))
		if err != nil {
			return err
		}
		if stable < end {
			return fmt.Errorf("a transaction is open in %s-%d", topic, p)
		}
	}
	return nil
}
