package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/millrace-streams/millrace/bench/internal/contender"
)

// Aim is something to reach, and what was reached. Ratios are those of medians in one run of the command.
type Aim struct {
	What string `json:"what"`
	Want string `json:"want"`
	Have string `json:"have"`
	Met  bool   `json:"met"`
}

// goal is an aim before anything is measured.
type goal struct {
	what    string
	have    func(*Report) float64 // 0 if it was not measured
	want    float64
	smaller bool // what is smaller is better
	format  format
}

const (
	millrace = "millrace"
	memory   = "millrace-memory"
	streams  = contender.KafkaStreams
)

// goals are the project's aims.
func goals() []goal {
	all := []goal{
		{"count-1k: throughput, of Kafka Streams'", against("count-1k", millrace, streams, Rate), 2, false, fold},
		{"count-100k: throughput, of Kafka Streams'", against("count-100k", millrace, streams, Rate), 4, false, fold},
		{"count-1m: throughput, of Kafka Streams'", against("count-1m", millrace, streams, Rate), 8, false, fold},
		{"words: throughput, of Kafka Streams'", against("words", millrace, streams, Rate), 5, false, fold},
	}
	all = append(all, goal{"words, combined before the repartition topic: throughput, of Kafka Streams'", against("words", contender.Combining, streams, Rate), 12, false, fold})
	all = append(all, goal{"the same with words by Zipf's law", against("words-zipf", contender.Combining, streams, Rate), 12, false, fold})
	for _, w := range []string{"count-1k", "count-100k", "count-1m", "words"} {
		all = append(all,
			goal{w + ": CPU at work, of Kafka Streams'", against(w, millrace, streams, CPUWork), 1. / 5, true, fraction},
			goal{w + ": peak memory, of Kafka Streams'", against(w, millrace, streams, Peak), 1. / 2, true, fraction},
			goal{w + ": throughput, of the plain loop's", against(w, millrace, contender.Plain, Rate), 0.85, false, percent})
	}
	return append(all,
		goal{"latency-1k: p50, of Kafka Streams'", against("latency-1k", millrace, streams, P50), 1. / 4, true, fraction},
		goal{"latency-1k: p99, of Kafka Streams'", against("latency-1k", millrace, streams, P99), 1. / 4, true, fraction},
		goal{"restore into memory, of Kafka Streams'", against("restore", memory, streams, Rate), 4, false, fold},
		goal{"restore into bbolt, of Kafka Streams'", against("restore", millrace, streams, Rate), 2, false, fold},
		goal{"count-1k: allocations per record", value("count-1k", Allocs), 2, true, decimals},
		goal{"throughput with 1,000,000 keys, of that with 1,000", growth("count-1m", "count-1k"), 0.6, false, percent},
		goal{"throughput with 64 partitions, of that with 4", growth("count-1k-64p", "count-1k"), 0.8, false, percent},
		goal{"restart: s from kill -9 to outputs of all partitions", value("restart", Whole), 2, true, decimals},
		goal{"takeover: s from kill -9 to an output of the dead process' partitions", value("takeover", First), 11, true, decimals},
		goal{"rolling: s of the longest silence of a partition", value("rolling", Idle), 1, true, decimals},
	)
}

func fold(v float64) string     { return fmt.Sprintf("%.1fx", v) }
func fraction(v float64) string { return fmt.Sprintf("1/%.1f", 1/v) }

// against compares two contenders.
func against(workload, a, b string, m Metric) func(*Report) float64 {
	return func(r *Report) float64 { return ratio(r.median(workload, a, m), r.median(workload, b, m)) }
}

// growth compares Millrace's throughput in two workloads.
func growth(a, b string) func(*Report) float64 {
	return func(r *Report) float64 { return ratio(r.median(a, millrace, Rate), r.median(b, millrace, Rate)) }
}

// value is Millrace's; that of Allocs is per record.
func value(workload string, m Metric) func(*Report) float64 {
	return func(r *Report) float64 {
		v := r.median(workload, millrace, m)
		if m == Allocs && v > 0 {
			v /= float64(r.find(workload).Workload.Records)
		}
		return v
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// median is 0 if there is none.
func (r *Report) median(workload, who string, m Metric) float64 {
	s := r.find(workload)
	if s == nil || s.Row(who) == nil {
		return 0
	}
	return s.Row(who).Stats[m].Median
}

func (r *Report) find(workload string) *Section {
	i := slices.IndexFunc(r.Sections, func(s *Section) bool { return s.Workload.Name == workload })
	if i < 0 {
		return nil
	}
	return r.Sections[i]
}

// Judge sets the aims by what was measured, and leaves out what was not.
func (r *Report) Judge() {
	r.Aims = nil
	for _, g := range goals() {
		have := g.have(r)
		if have == 0 {
			continue
		}
		met := have >= g.want
		want := "at least " + g.format(g.want)
		if g.smaller {
			met, want = have <= g.want, "at most "+g.format(g.want)
		}
		r.Aims = append(r.Aims, Aim{What: g.what, Want: want, Have: g.format(have), Met: met})
	}
}

// PrintAims writes the aims.
func (r *Report) PrintAims(out io.Writer) {
	if len(r.Aims) == 0 {
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "aim\twanted\tmeasured\t")
	for _, a := range r.Aims {
		met := "met"
		if !a.Met {
			met = "NOT MET"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.What, a.Want, a.Have, met)
	}
	_ = t.Flush()
	fmt.Fprintln(out)
}
