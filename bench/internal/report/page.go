package report

import (
	_ "embed" // for the page
	"html/template"
	"os"
	"strings"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"thousands": work.Thousands}).Parse(pageText))

// chart compares one metric of the contenders.
type chart struct {
	Title string
	Bars  []bar
}

// bar is a contender's median, and its spread; lengths are percent of the chart's width.
type bar struct {
	Name, Text        string
	Class             string
	Length, From, Run float64
}

// panel is a workload on the page.
type panel struct {
	*Section
	Charts []chart
	Head   []string
	Cells  [][]string
}

// WritePage writes the report as one HTML file that needs no other.
func (r *Report) WritePage(path string) error {
	var panels []panel
	for _, s := range r.Sections {
		panels = append(panels, s.panel())
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := page.Execute(f, map[string]any{"Report": r, "Panels": panels, "Contenders": contender.All}); err != nil {
		return err
	}
	return f.Close()
}

func (s *Section) panel() panel {
	p := panel{Section: s}
	for _, c := range charts(s.Workload.Measure) {
		if bars := s.bars(c); len(bars) > 0 {
			p.Charts = append(p.Charts, chart{Title: c.title, Bars: bars})
		}
	}
	p.Head, p.Cells = s.table()
	return p
}

// shown is a metric of a chart.
type shown struct {
	title  string
	metric Metric
	format format
}

func charts(m work.Measure) []shown {
	used := []shown{{"CPU seconds of the process", CPU, decimals}, {"Peak memory of the process, MB", Peak, megabytes}}
	switch m {
	case work.Throughput, work.Restore:
		return append([]shown{{"Records per second: longer is better", Rate, whole}}, used...)
	case work.Latency:
		return append([]shown{{"Latency p50, ms", P50, whole}, {"Latency p99, ms", P99, whole}}, used...)
	case work.Rolling:
		return []shown{{"Longest silence of a partition, s", Idle, decimals}}
	default:
		return []shown{{"Until the first output, s", First, decimals}, {"Until all partitions have outputs, s", Whole, decimals}}
	}
}

func (s *Section) bars(c shown) (bars []bar) {
	longest := 0.0
	for _, x := range s.Rows {
		longest = max(longest, x.Stats[c.metric].Max)
	}
	for _, x := range s.Rows {
		v, ok := x.Stats[c.metric]
		if !ok || longest == 0 {
			continue
		}
		percent := func(v float64) float64 { return 100 * v / longest }
		class, _, _ := strings.Cut(x.Contender, "-")
		bars = append(bars, bar{
			Name: x.Contender, Text: c.format(v.Median), Class: class,
			Length: percent(v.Median), From: percent(v.Min), Run: percent(v.Max) - percent(v.Min),
		})
	}
	return bars
}

// table returns a workload's table: headings, and a line of cells for each contender.
func (s *Section) table() (head []string, lines [][]string) {
	all := columns(s.Workload)
	head = []string{"contender", "runs"}
	for _, c := range all {
		head = append(head, c.head)
	}
	for _, x := range s.Rows {
		line := []string{x.Contender, whole(float64(len(x.Runs)))}
		for i, c := range all {
			cell := c.cell(s, x)
			switch {
			case i == 0 && len(x.Runs) == 0:
				cell = "no figure"
			case cell == "":
				cell = "-"
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	return head, lines
}
