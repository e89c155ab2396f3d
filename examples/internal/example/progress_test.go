package example

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
)

func TestProgressIsOneLineForAllStores(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	clock := time.UnixMilli(0)
	p := &progress{out: &out, quiet: time.Second, now: func() time.Time { return clock }}
	tell := func(store string, position, end, records int64) {
		p.tell(millrace.Restoring{Store: store, Position: position, End: end, Records: records})
	}
	tell("quick", 0, 10, 0)
	tell("quick", 10, 10, 9) // sooner than anybody could read it
	tell("a", 0, 100, 0)
	tell("b", 0, 50, 0)
	clock = clock.Add(2 * time.Second)
	tell("a", 60, 100, 55)
	tell("b", 50, 50, 40)
	tell("a", 100, 100, 90)
	want := clearLine + "restoring: 55 records, at most 90 to come" +
		clearLine + "restoring: 95 records, at most 40 to come" +
		clearLine + "restored: 130 records\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
