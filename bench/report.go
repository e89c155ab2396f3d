package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report collects the figures. It is written as JSON.
type report struct {
	Started  time.Time `json:"started"`
	Go       string    `json:"go"`
	System   string    `json:"system"`
	Cores    int       `json:"cores"`
	Interval string    `json:"commit_interval"`
	Rows     []*row    `json:"rows"`
}

// row holds the runs of one contender at one workload.
type row struct {
	Workload  string   `json:"workload"`
	Contender string   `json:"contender"`
	Records   int      `json:"records"`
	Runs      []figure `json:"runs"`
	Failures  []string `json:"failures,omitempty"` // runs without a figure

	Rate         stats   `json:"records_per_second"`
	CPU          float64 `json:"cpu_seconds_per_million"` // medians from here on
	PeakMB       float64 `json:"peak_mb"`
	Allocs       float64 `json:"allocs_per_record"`
	RatioToPlain float64 `json:"ratio_to_plain,omitempty"` // of the rates
}

// stats says how a figure is spread over the runs.
type stats struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func newReport(o options) *report {
	return &report{
		Started: time.Now().UTC(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(),
		Interval: o.interval.String(),
	}
}

// add takes the outcome of a run.
func (r *report) add(w workload, c contender, f figure, err error) {
	x := r.row(w, c.name)
	if x == nil {
		x = &row{Workload: w.Name, Contender: c.name, Records: w.Records}
		r.Rows = append(r.Rows, x)
	}
	if err != nil {
		x.Failures = append(x.Failures, err.Error())
		return
	}
	x.Runs = append(x.Runs, f)
	x.summarise()
}

func (r *report) row(w workload, contender string) *row {
	i := slices.IndexFunc(r.Rows, func(x *row) bool { return x.Workload == w.Name && x.Contender == contender })
	if i < 0 {
		return nil
	}
	return r.Rows[i]
}

func (x *row) summarise() {
	over := func(value func(figure) float64) stats {
		var all []float64
		for _, f := range x.Runs {
			all = append(all, value(f))
		}
		slices.Sort(all)
		n := len(all)
		return stats{Median: (all[(n-1)/2] + all[n/2]) / 2, Min: all[0], Max: all[n-1]}
	}
	n := float64(x.Records)
	x.Rate = over(func(f figure) float64 { return n / f.Seconds })
	x.CPU = over(func(f figure) float64 { return f.CPUSeconds / n * 1e6 }).Median
	x.PeakMB = over(func(f figure) float64 { return float64(f.PeakBytes) / (1 << 20) }).Median
	x.Allocs = over(func(f figure) float64 { return f.Allocs }).Median
}

// failures returns the number of runs without a figure.
func (r *report) failures() int {
	n := 0
	for _, x := range r.Rows {
		n += len(x.Failures)
	}
	return n
}

// print writes a workload's table.
func (r *report) print(out io.Writer, w workload) {
	plain := r.row(w, plainName)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%s; %s records\n", w.Name, thousands(w.Records))
	fmt.Fprintln(t, "contender\trecords/s\tmin\tmax\tof plain\tCPU-s per million\tpeak MB\tallocs/record\t")
	for _, x := range r.Rows {
		if x.Workload != w.Name {
			continue
		}
		if len(x.Runs) == 0 {
			fmt.Fprintf(t, "%s\tno figure\t\n", x.Contender)
			continue
		}
		ratio := "-"
		if plain != nil && len(plain.Runs) > 0 {
			x.RatioToPlain = x.Rate.Median / plain.Rate.Median
			ratio = fmt.Sprintf("%.0f%%", 100*x.RatioToPlain)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.0f\t%.2f\t\n", x.Contender, thousands(int(x.Rate.Median)), thousands(int(x.Rate.Min)),
			thousands(int(x.Rate.Max)), ratio, x.CPU, x.PeakMB, x.Allocs)
	}
	t.Flush()
	fmt.Fprintln(out)
}

// write writes all figures as JSON.
func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
