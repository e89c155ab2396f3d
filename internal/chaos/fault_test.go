package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestPlanFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	show := func(seed uint64) string {
		return fmt.Sprint(plan(rand.New(rand.NewPCG(seed, 2)), 60, options{mean: time.Second}, true))
	}
	if first, again := show(1), show(1); first != again {
		t.Error("one seed, two plans")
	}
	if show(1) == show(2) {
		t.Error("two seeds, one plan")
	}
}

// Every kind is drawn sooner or later; a round has its outage; what needs a disk is not drawn for memory.
func TestPlanHasEveryKind(t *testing.T) {
	t.Parallel()
	for _, bolt := range []bool{true, false} {
		seen := map[string]int{}
		r := rand.New(rand.NewPCG(1, 2))
		const rounds = 40
		for range rounds {
			outages, undones := 0, 0
			for _, p := range plan(r, 50, options{mean: time.Second}, bolt) {
				seen[p.fault.kind()]++
				if _, ok := p.fault.(outage); ok {
					outages++
				}
				if _, ok := p.fault.(undone); ok {
					undones++
				}
			}
			if outages != 1 || undones != 50/undoneOf {
				t.Fatalf("%d outages and %d transactions that are undone in a round", outages, undones)
			}
		}
		for _, kind := range []string{
			"kill -9", "SIGSTOP", "SIGSTOP for longer than the timeouts", "panic in a user's function", "goexit in a user's function",
			"stop and start", "rolling restart", "process added", "process removed", "network held up", "Fetch never arrives, then kill -9 of another", "connections cut",
			"state directory lost", "broker restart", "broker kill -9 and start", "broker stalled",
			"a user's function takes longer than the timeouts",
			"EndTxn never arrives, transaction times out", "EndTxn never arrives, then kill -9", "kill -9 at EndTxn's request", "kill -9 at EndTxn's answer", "SIGSTOP at EndTxn's request", "EndTxn: answer lost", "Produce: answer lost", "TxnOffsetCommit: answer late", "Heartbeat: answer swallowed", "Fetch: request lost",
		} {
			if seen[kind] == 0 {
				t.Errorf("bolt %v: never drawn: %s", bolt, kind)
			}
		}
		for _, kind := range []string{"disk full", "disk bad", "disk corrupt", "store's file damaged: both meta pages"} {
			if (seen[kind] > 0) != bolt {
				t.Errorf("bolt %v: %s is drawn %d times", bolt, kind, seen[kind])
			}
		}
	}
}
