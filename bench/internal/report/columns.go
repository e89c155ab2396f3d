package report

import (
	"fmt"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// column is a heading and what stands below it, "" for nothing.
type column struct {
	head string
	cell func(s *Section, x *Row) string
}

// columns returns those of a workload's table.
func columns(w work.Workload) []column {
	switch w.Measure {
	case work.Throughput:
		return []column{
			median("records/s", Rate, whole), least("min", Rate, whole), most("max", Rate, whole),
			{"of plain", func(s *Section, x *Row) string { return percent(s.ratio(x, contender.Plain, Rate)) }},
			{"of Kafka Streams", times(Rate)},
			perMillion("CPU-s/million", CPU), perMillion("at work", CPUWork), {"of KS", share(CPUWork)},
			perMillion("broker", Broker), median("peak MB", Peak, megabytes), {"of KS", share(Peak)}, perRecord("allocs/record", Allocs),
		}
	case work.Restore:
		return []column{
			median("records/s", Rate, whole), least("min", Rate, whole), most("max", Rate, whole), {"of Kafka Streams", times(Rate)},
			perMillion("CPU-s/million", CPU), median("peak MB", Peak, megabytes), {"of KS", share(Peak)},
		}
	case work.Latency:
		return []column{
			median("p50 ms", P50, whole), median("p95 ms", P95, whole), median("p99 ms", P99, whole),
			least("p99 min", P99, whole), most("p99 max", P99, whole), {"p50 of KS", share(P50)}, {"p99 of KS", share(P99)},
			median("CPU-s", CPU, decimals), median("peak MB", Peak, megabytes),
		}
	case work.Rolling:
		return []column{median("longest idle s", Idle, decimals), least("min", Idle, decimals), most("max", Idle, decimals), {"of KS", share(Idle)}}
	default:
		return []column{
			median("first output s", First, decimals), median("all partitions s", Whole, decimals),
			least("min", Whole, decimals), most("max", Whole, decimals), {"of KS", share(Whole)}, median("replayed", Replayed, whole),
		}
	}
}

type format func(float64) string

func whole(v float64) string     { return work.Thousands(int(v + 0.5)) }
func decimals(v float64) string  { return fmt.Sprintf("%.2f", v) }
func megabytes(v float64) string { return whole(v / (1 << 20)) }

func percent(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*ratio)
}

// of returns a column that formats one value of a metric's spread.
func of(head string, m Metric, pick func(Stats) float64, f format) column {
	return column{head, func(_ *Section, x *Row) string {
		s, ok := x.Stats[m]
		if !ok {
			return ""
		}
		return f(pick(s))
	}}
}

func median(head string, m Metric, f format) column {
	return of(head, m, func(s Stats) float64 { return s.Median }, f)
}

func least(head string, m Metric, f format) column {
	return of(head, m, func(s Stats) float64 { return s.Min }, f)
}

func most(head string, m Metric, f format) column {
	return of(head, m, func(s Stats) float64 { return s.Max }, f)
}

func perMillion(head string, m Metric) column { return per(head, m, 1e6) }
func perRecord(head string, m Metric) column  { return per(head, m, 1) }

func per(head string, m Metric, records float64) column {
	return column{head, func(s *Section, x *Row) string {
		v, ok := x.Stats[m]
		if !ok {
			return ""
		}
		return decimals(v.Median / float64(s.Workload.Records) * records)
	}}
}

// times says how many times that of Kafka Streams a metric is.
func times(m Metric) func(*Section, *Row) string {
	return func(s *Section, x *Row) string {
		if r := s.ratio(x, contender.KafkaStreams, m); r > 0 {
			return fold(r)
		}
		return ""
	}
}

// share says which part of that of Kafka Streams a metric is.
func share(m Metric) func(*Section, *Row) string {
	return func(s *Section, x *Row) string {
		if r := s.ratio(x, contender.KafkaStreams, m); r > 0 && x.Contender != contender.KafkaStreams {
			return fraction(r)
		}
		return ""
	}
}

// ratio compares medians with those of another contender, 0 if there is nothing to compare.
func (s *Section) ratio(x *Row, other string, m Metric) float64 {
	y := s.Row(other)
	if y == nil {
		return 0
	}
	return ratio(x.Stats[m].Median, y.Stats[m].Median)
}
