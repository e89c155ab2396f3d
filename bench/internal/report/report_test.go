package report

import (
	"os"
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
	if r.Failures() != 1 {
		t.Errorf("%d failures", r.Failures())
	}
}
