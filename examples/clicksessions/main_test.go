package main

import (
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/examples/internal/exampletest"
)

const want = about + `

reads:  clicks
writes: visits, late-clicks

09:00  ann  /home
09:03  bob  /news
09:07  ann  /shoes
09:45  bob  /weather          (42 minutes after bob's last click: a new visit, and the old one is over)
       => visits       bob 09:03-09:03: /news
09:12  ann  /cart             (out of order, but in time: ann's visit is still open)
09:50  cid  /home
10:25  cid  /help             (35 minutes after cid's last click: a new visit; and ann's is over now)
       => visits       ann 09:00-09:12: /home /shoes /cart
09:20  ann  /pay              (too late for ann's visit)
       => late-clicks  ann 09:20: /pay
10:08  cid  /shoes            (out of order, between cid's two visits: they become one)
10:40  bob  /news
       => visits       bob 09:45-09:45: /weather
11:30  dan  /home             (ends what is older than 40 minutes; dan's own visit is still open)
       => visits       cid 09:50-10:25: /home /shoes /help
       => visits       bob 10:40-10:40: /news

11 records in, 5 records out to visits, 1 record out to late-clicks
`

func TestProgram(t *testing.T) {
	t.Parallel()
	if got := exampletest.Run(t, parse, run); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// With a state directory of its own, a second run is the next day, and what was open is told then.
func TestProgramGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := exampletest.Run(t, parse, run, "-state-dir", dir, "-store", "memory"); got != want {
		t.Errorf("first day:\n%s\nwant:\n%s", got, want)
	}
	next := strings.Replace(want, "/home\n", "/home\n       => visits       dan 11:30-11:30: /home\n", 1)
	next = strings.Replace(next, "5 records out", "6 records out", 1)
	if got := exampletest.Run(t, parse, run, "-state-dir", dir, "-store", "memory"); got != next {
		t.Errorf("next day:\n%s\nwant:\n%s", got, next)
	}
}

func TestEachUpdate(t *testing.T) {
	t.Parallel()
	got := exampletest.Run(t, parse, run, "-emit", "update", "-guarantee", "at_least_once")
	for _, line := range []string{"ann 09:00-09:00: /home\n", "cid 10:25-10:25: no more", "14 records out to visits"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in:\n%s", line, got)
		}
	}
}

func TestBadEmit(t *testing.T) {
	o, err := parse([]string{"-emit", "never"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), o, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("got %v", err)
	}
}
