// Package report collects the figures of runs, and writes them as text, as JSON and as a page with charts.
package report

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Figure is what one run showed: values by metric.
type Figure map[Metric]float64

// Metric names a value.
type Metric string

// The metrics.
const (
	Rate     Metric = "records_per_second"
	CPU      Metric = "cpu_seconds"        // user and system time of the whole process, its start and end included
	CPUWork  Metric = "cpu_seconds_work"   // the part of it between first fetch and last commit
	Broker   Metric = "broker_cpu_seconds" // likewise, of the broker
	Peak     Metric = "peak_bytes"         // largest resident set
	Allocs   Metric = "allocations"        // on Go's heap, between first fetch and last commit
	P50      Metric = "p50_ms"
	P95      Metric = "p95_ms"
	P99      Metric = "p99_ms"
	First    Metric = "first_output_seconds" // until any partition has a new output
	Whole    Metric = "all_outputs_seconds"  // until every partition has
	Idle     Metric = "longest_idle_seconds"
	Replayed Metric = "replayed_records"
)

// Report holds all figures. It is written as JSON.
type Report struct {
	Started      time.Time     `json:"started"`
	Took         time.Duration `json:"took_ns"`
	Go           string        `json:"go"`
	KafkaStreams string        `json:"kafka_streams"` // its version, or why there is none
	System       string        `json:"system"`
	Cores        int           `json:"cores"`
	Threads      int           `json:"threads"` // of Kafka Streams, workers of Millrace
	Interval     string        `json:"commit_interval"`
	Scale        float64       `json:"scale"`
	Sections     []*Section    `json:"workloads"`
	Aims         []Aim         `json:"aims,omitempty"`
}

// Section holds the figures of one workload.
type Section struct {
	Workload work.Workload `json:"workload"`
	Rows     []*Row        `json:"contenders"`
}

// Row holds the runs of one contender.
type Row struct {
	Contender string           `json:"contender"`
	Runs      []Figure         `json:"runs"`
	Failures  []string         `json:"failures,omitempty"` // runs without a figure
	Stats     map[Metric]Stats `json:"stats"`
}

// Stats says how a metric is spread over the runs.
type Stats struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Section returns that of a workload.
func (r *Report) Section(w work.Workload) *Section {
	s := r.find(w.Name)
	if s == nil {
		s = &Section{Workload: w}
		r.Sections = append(r.Sections, s)
	}
	return s
}

// Add takes the outcome of a run.
func (s *Section) Add(contender string, f Figure, err error) {
	x := s.Row(contender)
	if x == nil {
		x = &Row{Contender: contender}
		s.Rows = append(s.Rows, x)
	}
	if err != nil {
		x.Failures = append(x.Failures, err.Error())
		return
	}
	x.Runs = append(x.Runs, f)
	x.Stats = map[Metric]Stats{}
	for m := range f {
		x.Stats[m] = spread(x.Runs, m)
	}
}

// Row returns that of a contender, nil if it has none.
func (s *Section) Row(contender string) *Row {
	i := slices.IndexFunc(s.Rows, func(x *Row) bool { return x.Contender == contender })
	if i < 0 {
		return nil
	}
	return s.Rows[i]
}

func spread(runs []Figure, m Metric) Stats {
	var all []float64
	for _, f := range runs {
		all = append(all, f[m])
	}
	slices.Sort(all)
	n := len(all)
	return Stats{Median: (all[(n-1)/2] + all[n/2]) / 2, Min: all[0], Max: all[n-1]}
}

// Failures returns the number of runs without a figure.
func (r *Report) Failures() int {
	n := 0
	for _, s := range r.Sections {
		for _, x := range s.Rows {
			n += len(x.Failures)
		}
	}
	return n
}

// Write writes the report as JSON.
func (r *Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
