package sim_test

import (
	"time"
)

// run lets things happen until the input is used up and the deaths are died, and then until all is processed.
func (w *world) run(input []func()) {
	w.schedule(input)
	w.revive()
	w.settle()
}

// schedule lets things happen in the order that the seed chooses.
func (w *world) schedule(input []func()) {
	for _, p := range w.processes {
		p.start(true)
	}
	for steps := 0; len(input) > 0 || w.plan.crashes > 0; steps++ {
		if steps > 100_000 {
			w.fatalf("the schedule does not end: %d inputs and %d crashes left", len(input), w.plan.crashes)
		}
		if len(input) > 0 && w.rng.IntN(6) == 0 {
			input[0]()
			input = input[1:]
			continue
		}
		w.act()
	}
}

// act is one random action.
func (w *world) act() {
	p := w.processes[w.rng.IntN(len(w.processes))]
	switch n := w.rng.IntN(1000); {
	case n < 700:
		p.turn()
	case n < 800:
		w.now = w.now.Add(time.Duration(w.rng.IntN(40)) * time.Millisecond)
	case n < 920:
		if k := w.cluster.Markers(); k > 0 {
			w.cluster.WriteMarker(w.rng.IntN(k))
		}
	case n < 940:
		w.kill(p)
	case n < 950:
		w.pause(p)
	case n < 960:
		w.stop(p)
	case n < 970:
		w.group.Move(w.rng.IntN(len(w.layout.Tasks)))
	case n < 975:
		w.compact()
	case n < 985:
		w.noticeDead(p)
	default:
		if p.worker == nil {
			p.start(w.rng.IntN(3) > 0)
		}
	}
}

// kill lights a fuse, or kills at once, between two turns.
func (w *world) kill(p *process) {
	if w.plan.crashes == 0 || p.worker == nil || p.fuse > 0 {
		return
	}
	w.plan.crashes--
	if w.rng.IntN(3) == 0 {
		w.note("%s dies between two turns", p.name)
		p.die()
		return
	}
	p.fuse = 1 + w.rng.IntN(60)
}

// pause makes a process sleep, long enough sometimes to be thrown out, and wake up as a zombie.
func (w *world) pause(p *process) {
	if !w.plan.zombies || p.worker == nil || p.paused > 0 {
		return
	}
	p.paused = 1 + w.rng.IntN(40)
	if w.rng.IntN(2) == 0 {
		w.note("%s is paused and thrown out", p.name)
		p.port.Deaf(true)
		p.port.Expel()
		p.deaf = 1 + w.rng.IntN(8)
	}
}

func (w *world) stop(p *process) {
	if p.worker == nil || p.stopping || w.rng.IntN(3) > 0 {
		return
	}
	w.note("%s is told to stop", p.name)
	p.stopping = true
	p.port.Stop()
}

// noticeDead lets the broker notice that a process is gone: its session, its transaction, or both have timed out.
func (w *world) noticeDead(p *process) {
	if p.worker != nil {
		return
	}
	if w.rng.IntN(2) == 0 {
		w.cluster.Expire(p.name)
	}
	p.port.Leave()
}

func (w *world) compact() {
	for _, id := range w.layout.Tasks {
		for _, c := range w.layout.Changelogs[id] {
			w.cluster.Compact(c.TopicPartition)
		}
	}
}

// revive ends the faults and starts whatever is dead.
func (w *world) revive() {
	w.calm = true
	w.note("settling")
	for _, p := range w.processes {
		p.fuse = 0
		if p.worker == nil {
			p.start(true)
		}
	}
}

// round lets every process turn once, and reports whether one has something on its hands.
func (w *world) round() (busy bool) {
	w.cluster.WriteMarkers()
	for _, p := range w.processes {
		if p.worker == nil { // a stop that was under way
			p.start(true)
		}
		p.turn()
		busy = busy || p.worker == nil || p.stopping || p.paused > 0 || p.deaf > 0 || p.port.Busy()
	}
	w.now = w.now.Add(7 * time.Millisecond)
	return busy
}

// settle lets everything run until all input is processed, committed and flushed.
func (w *world) settle() {
	quiet := 0
	for rounds := 0; quiet < 10; rounds++ {
		if rounds > 5000 {
			w.fatalf("does not settle: %s", w.group)
		}
		quiet++
		if w.round() || !w.group.Settled() {
			quiet = 0
		}
	}
	w.now = w.now.Add(flushInterval)
	for _, p := range w.processes {
		p.turn()
		p.turn()
	}
}

// end stops all processes in good order.
func (w *world) end() {
	for _, p := range w.processes {
		p.stopping = true
		p.port.Stop()
	}
	for rounds := 0; ; rounds++ {
		live := 0
		for _, p := range w.processes {
			if p.worker != nil {
				live++
				p.turn()
			}
		}
		if live == 0 {
			return
		}
		if rounds > 1000 {
			w.fatalf("%d processes do not stop", live)
		}
		w.now = w.now.Add(time.Millisecond)
		w.cluster.WriteMarkers()
	}
}
