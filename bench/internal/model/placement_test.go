package model_test

import (
	"fmt"
	"testing"

	"github.com/millrace-streams/millrace/bench/internal/model"
	"github.com/millrace-streams/millrace/internal/seed"
)

// Groups of all sizes share out their tasks evenly, lose no more than the tasks of who dies, and fill who joins.
func TestGroups(t *testing.T) {
	t.Parallel()
	first := seed.Of(t)
	for n, x := range []struct{ processes, partitions, standbys, racks int }{
		{3, 24, 1, 3}, {4, 30, 2, 2}, {10, 200, 1, 3}, {30, 300, 0, 1}, {30, 300, 1, 3}, {100, 2_000, 0, 1},
	} {
		t.Run(fmt.Sprintf("%+v", x), func(t *testing.T) {
			t.Parallel()
			c := model.Default()
			c.Keys, c.Processes, c.Partitions, c.Standbys, c.Racks = 50e6, x.processes, x.partitions, x.standbys, x.racks
			g := model.NewGroup(c, first+uint64(n))
			if change := g.Join(x.processes); change.Taken != x.partitions || change.Moved != 0 {
				t.Errorf("a group that starts: %+v", change)
			}
			balanced(t, g, x.processes, x.partitions, x.standbys)

			died := g.Die(1)
			if most := (x.partitions + x.processes - 1) / x.processes; died.Taken-died.Moved > most || died.Taken == 0 {
				t.Errorf("a process of at most %d tasks dies: %+v", most, died)
			}
			if x.standbys > 0 && died.Restored > 0 {
				t.Errorf("%d records are restored for tasks that had standbys", died.Restored)
			}
			if x.standbys == 0 && died.Moved > 0 {
				t.Errorf("%d tasks move because others have lost their owner", died.Moved)
			}
			balanced(t, g, x.processes-1, x.partitions, x.standbys)

			joined := g.Join(1)
			if joined.Restored > 0 || joined.Taken != joined.Moved {
				t.Errorf("tasks rest because a process joins: %+v", joined)
			}
			if least := x.partitions / x.processes; joined.Moved < least {
				t.Errorf("a process joins and gets %d tasks, not %d", joined.Moved, least)
			}
			balanced(t, g, x.processes, x.partitions, x.standbys)
		})
	}
}

func balanced(t *testing.T, g *model.Group, processes, partitions, standbys int) {
	t.Helper()
	b := g.Balance()
	if b.Tasks[1]-b.Tasks[0] > 1 {
		t.Errorf("%d processes share %d tasks as %d to %d", processes, partitions, b.Tasks[0], b.Tasks[1])
	}
	if total := partitions * min(standbys, processes-1); b.Standbys[0]*processes > total || b.Standbys[1]*processes < total {
		t.Errorf("%d processes have %d standbys as %d to %d", processes, total, b.Standbys[0], b.Standbys[1])
	}
}
