package example

import (
	"context"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// FirstDay is when the samples happen, on topics that are empty.
var FirstDay = time.Date(2025, time.January, 6, 0, 0, 0, 0, time.UTC)

// NextDay returns the midnight behind all records of a topic, as at tells their times, so that a further run on the same
// topics goes on in time; FirstDay if there are none.
func NextDay[K, V any](ctx context.Context, h *Home, t topology.Topic[K, V], at func(V) time.Time) (time.Time, error) {
	day := FirstDay
	err := NewReader(h, t).Each(ctx, func(r processor.Record[K, V]) error {
		if !r.NullValue && !at(r.Value).Before(day) {
			day = at(r.Value).UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		}
		return nil
	})
	return day, err
}

// Clock formats the time of a day.
func Clock(at time.Time) string { return at.UTC().Format("15:04") }

// ClockOf formats the time of a day of a timestamp.
func ClockOf(timestamp int64) string { return Clock(time.UnixMilli(timestamp)) }
