package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/store"
)

// FieldReport57: queries of windows and sessions over three partitions, the first
// of which holds one of key a and time 0, the others b and 10, c and 20. Every
// partition must answer, the times must not be mixed up, and a query that is
// stopped early must leave nothing behind: the next one answers alike.
func FieldReport57(t *testing.T, windows *store.ReadOnlyWindow[string, int64], sessions *store.ReadOnlySession[string, int64]) {
	t.Helper()
	type fn = func(store.Row[string, int64]) bool
	keys := func(scan func(fn) error, stopAt string) (found []string) {
		t.Helper()
		check(t, scan(func(r store.Row[string, int64]) bool {
			if r.Start != r.Timestamp || r.Value != 1 {
				t.Errorf("row %+v", r)
			}
			found = append(found, fmt.Sprint(r.Key, r.Start))
			return r.Key != stopAt
		}))
		return found
	}
	for range 2 {
		for _, c := range []struct {
			what   string
			scan   func(fn) error
			stopAt string
			want   []string
		}{
			{"keys and times", func(f fn) error { return windows.FetchKeys("a", "c", 0, 20, f) }, "", []string{"a0", "b10", "c20"}},
			{"reverse", func(f fn) error { return windows.ReverseFetchKeys("a", "c", 0, 20, f) }, "", []string{"a0", "b10", "c20"}},
			{"stopped", func(f fn) error { return windows.FetchKeys("a", "c", 0, 20, f) }, "b", []string{"a0", "b10"}},
			{"some keys", func(f fn) error { return windows.FetchKeys("b", "c", 0, 20, f) }, "", []string{"b10", "c20"}},
			{"until 19", func(f fn) error { return windows.FetchKeys("a", "c", 0, 19, f) }, "", []string{"a0", "b10"}},
			{"from 1", func(f fn) error { return windows.FetchKeys("a", "c", 1, 20, f) }, "", []string{"b10", "c20"}},
			{"no time", func(f fn) error { return windows.FetchKeys("a", "c", 20, 0, f) }, "", nil},
			{"one key", func(f fn) error { return windows.FetchRange("c", 0, 20, f) }, "", []string{"c20"}},
			{"one key in reverse", func(f fn) error { return windows.ReverseFetchRange("b", 0, 20, f) }, "", []string{"b10"}},
			{"times", func(f fn) error { return windows.FetchAll(0, 10, f) }, "", []string{"a0", "b10"}},
			{"times in reverse", func(f fn) error { return windows.ReverseFetchAll(10, 20, f) }, "", []string{"b10", "c20"}},
			{"all", windows.All, "", []string{"a0", "b10", "c20"}},
			{"all in reverse", windows.ReverseAll, "a", []string{"a0"}},
			{"sessions", func(f fn) error { return sessions.FindSessionsKeys("a", "c", 0, 20, f) }, "", []string{"a0", "b10", "c20"}},
			{"sessions in reverse", func(f fn) error { return sessions.ReverseFindSessionsKeys("a", "b", 0, 20, f) }, "", []string{"a0", "b10"}},
			{"sessions that end late", func(f fn) error { return sessions.FindSessionsKeys("a", "c", 10, 20, f) }, "", []string{"b10", "c20"}},
			{"sessions that start early", func(f fn) error { return sessions.FindSessionsKeys("a", "c", 0, 10, f) }, "b", []string{"a0", "b10"}},
			{"sessions by end", func(f fn) error { return sessions.FindByEnd(1, 20, f) }, "", []string{"b10", "c20"}},
			{"sessions of a key", func(f fn) error { return sessions.Fetch("c", f) }, "", []string{"c20"}},
			{"the same in reverse", func(f fn) error { return sessions.ReverseFetch("a", f) }, "", []string{"a0"}},
			{"found sessions", func(f fn) error { return sessions.FindSessions("b", 10, 10, f) }, "", []string{"b10"}},
			{"found too late", func(f fn) error { return sessions.ReverseFindSessions("b", 11, 20, f) }, "", nil},
		} {
			if got := keys(c.scan, c.stopAt); !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
		for key, at := range map[string]int64{"a": 0, "b": 10, "c": 20} {
			n, ts, ok, err := windows.FetchWithTime(key, at)
			check(t, err)
			m, sessionTS, found, err := sessions.FetchWithTime(store.Windowed[string]{Key: key, Start: at, End: at})
			check(t, err)
			if n != 1 || m != 1 || ts != at || sessionTS != at || !ok || !found {
				t.Errorf("%s: window %d at %d, %v; session %d at %d, %v", key, n, ts, ok, m, sessionTS, found)
			}
		}
		_, ok, err := windows.Fetch("a", 10)
		check(t, err)
		_, found, err := sessions.FetchSession("a", 10, 10)
		check(t, err)
		if ok || found {
			t.Error("there is no such window")
		}
	}
}
