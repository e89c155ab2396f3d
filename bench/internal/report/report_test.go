package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := &Report{}
	s := r.Section(work.Workload{Name: "work", Measure: work.Throughput, Records: 1000})
	for _, rate := range []float64{250, 1000, 500} {
		s.Add("plain", Figure{Rate: rate, CPU: 0.001}, nil)
	}
	s.Add("kafka-streams", Figure{Rate: 125, CPU: 0.002}, nil)
	s.Add("wrong", nil, os.ErrInvalid)
	if got := s.Row("plain").Stats[Rate]; got != (Stats{Median: 500, Min: 250, Max: 1000}) {
		t.Errorf("plain: %+v", got)
	}
	var out strings.Builder
	s.Print(&out)
	for _, want := range []string{"25%", "4.0x", "1/2.0", "no figure"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	r.Judge()
	page := filepath.Join(t.TempDir(), "page.html")
	if err := r.WritePage(page); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(page); err != nil || strings.Count(string(text), `class="bar"`) != 4 {
		t.Errorf("%v, the page is\n%s", err, text)
	}
	if r.Failures() != 1 {
		t.Errorf("%d failures", r.Failures())
	}
}

func TestAims(t *testing.T) {
	t.Parallel()
	r := &Report{}
	s := r.Section(work.Workload{Name: "count-1k", Measure: work.Throughput, Records: 1000})
	s.Add("kafka-streams", Figure{Rate: 100, CPU: 1, Peak: 100}, nil)
	s.Add("millrace", Figure{Rate: 300, CPU: 0.5, Peak: 50, Allocs: 1500}, nil)
	r.Judge()
	got := map[string]Aim{}
	for _, a := range r.Aims {
		got[a.What] = a
	}
	for what, want := range map[string]Aim{
		"count-1k: throughput, of Kafka Streams'":  {Want: "at least 2.0x", Have: "3.0x", Met: true},
		"count-1k: CPU, of Kafka Streams'":         {Want: "at most 1/5.0", Have: "1/2.0"},
		"count-1k: peak memory, of Kafka Streams'": {Want: "at most 1/2.0", Have: "1/2.0", Met: true},
		"count-1k: allocations per record":         {Want: "at most 2.00", Have: "1.50", Met: true},
	} {
		want.What = what
		if got[what] != want {
			t.Errorf("%+v, want %+v", got[what], want)
		}
	}
	if len(r.Aims) != 4 {
		t.Errorf("%d aims, though only those of one workload were measured: %+v", len(r.Aims), r.Aims)
	}
}
