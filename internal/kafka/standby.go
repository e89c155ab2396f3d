package kafka

import (
	"context"
	"time"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
)

// How often a process looks whether what it follows has caught up.
const (
	warmupCheck  = 300 * time.Millisecond // while a task waits for that
	standbyCheck = time.Second
	progressLog  = 10 * time.Second
)

// watchStandbys keeps an eye on what this process follows, and calls for a rebalance when a task that is to move here can.
func (g *group) watchStandbys(ctx context.Context) {
	var told time.Time
	for {
		wait := standbyCheck
		if g.warmingUp() {
			wait = warmupCheck
		}
		timer := time.NewTimer(wait)
		call := false
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-g.summon:
			call = true
		case <-timer.C:
		}
		timer.Stop()
		report := time.Since(told) >= progressLog
		if report {
			told = time.Now()
		}
		if g.checkStandbys(report) || call {
			if err := g.callForRebalance(ctx); err != nil && ctx.Err() == nil {
				g.cluster.cfg.Logger.Warn("the group could not be made to rebalance, trying again later", "error", err)
			}
		}
	}
}

func (g *group) warmingUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.warmups) > 0
}

// checkStandbys finds out how far behind everything is that this process follows. It reports whether the group should
// rebalance because of that.
func (g *group) checkStandbys(report bool) (call bool) {
	following := g.following()
	var all []processor.TopicPartition
	for _, l := range following {
		all = append(all, l.task.changelogs()...)
	}
	if len(all) == 0 {
		return false
	}
	logs, _ := g.cluster.ranges(all)
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, r := range logs {
		g.logs[tp] = r
	}
	for _, l := range following {
		if g.leases[l.task.ID] == l && g.judge(l, logs, report) {
			call = true
		}
	}
	return call && !g.stopping
}

// following returns the leases of the tasks that are stood by for.
func (g *group) following() (all []*lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.leases {
		if l.role == runtime.Standby && l.state == held {
			all = append(all, l)
		}
	}
	return all
}

// judge notes whether a standby has caught up. It reports whether the group should hear of it. One that had caught up may
// fall back a little, as when much is written at once.
func (g *group) judge(l *lease, logs map[processor.TopicPartition]Range, report bool) (call bool) {
	lag := int64(0)
	for _, c := range l.task.Changelogs {
		at, known := g.followed[c.TopicPartition]
		log, listed := logs[c.TopicPartition]
		if !known || !listed {
			return false
		}
		lag += max(0, log.End-at)
	}
	const slack = 4
	acceptable := g.cluster.cfg.AcceptableLag
	was := l.ready
	l.ready = lag <= acceptable || was && lag <= slack*max(acceptable, 1000)
	log := g.cluster.cfg.Logger.With("task", l.task.ID.String(), "lag", lag)
	warmup := g.warmups[l.task.ID]
	switch {
	case l.ready && !was:
		log.Info("standby has caught up", "warm-up", warmup)
	case !l.ready && was:
		log.Warn("standby has fallen behind", "warm-up", warmup)
	case !l.ready && warmup && report:
		log.Info("warming up")
	}
	return l.ready && warmup && l.calls.due(time.Now())
}

// pace spaces out what is tried until it has an effect.
type pace struct {
	next time.Time
	wait time.Duration
}

const (
	firstCallPause = time.Second
	lastCallPause  = 30 * time.Second
)

// due reports whether to try now.
func (p *pace) due(now time.Time) bool {
	if now.Before(p.next) {
		return false
	}
	p.wait = min(max(2*p.wait, firstCallPause), lastCallPause)
	p.next = now.Add(p.wait)
	return true
}

// report is what this process tells the group's leader.
func (g *group) report() memberData {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := memberData{workers: len(g.staying()), rack: g.cluster.cfg.Rack, promised: g.promised}
	for _, t := range g.tasks.list {
		l := g.leases[t.ID]
		at, kept := g.stored(t.ID)
		switch {
		case !t.Stateful || l != nil && l.role == runtime.Active && l.state < closing && l.working:
		case l != nil && l.state < closing && (l.state >= held || l.standing):
			m.states = append(m.states, taskState{task: t.ID, open: true, ready: l.ready && l.role == runtime.Standby, position: g.reached(l)})
		case kept || l != nil && l.role == runtime.Active:
			m.states = append(m.states, taskState{task: t.ID, position: at})
		}
	}
	return m
}

// stored is the sum of the changelog offsets that a task's stores on disk hold, as far as they are known.
func (g *group) stored(id processor.TaskID) (sum int64, any bool) {
	if g.cluster.cfg.Stored == nil {
		return 0, false
	}
	for _, c := range g.tasks.byID[id].Changelogs {
		at, ok := g.cluster.cfg.Stored(id, c.Store)
		sum, any = sum+at, any || ok
	}
	return sum, any
}

// reached is the sum of the changelog offsets that a task's stores have come to.
func (g *group) reached(l *lease) (sum int64) {
	for _, c := range l.task.Changelogs {
		sum += g.followed[c.TopicPartition]
	}
	return sum
}

// changelogs returns what the changelogs of all tasks hold, as of now, or where that cannot be had within the time, as of
// the last time that they were looked at.
func (g *group) changelogs(wait time.Duration) map[processor.TopicPartition]Range {
	var all []processor.TopicPartition
	for _, t := range g.tasks.list {
		all = append(all, g.tasks.byID[t.ID].changelogs()...)
	}
	found := make(chan map[processor.TopicPartition]Range, 1)
	g.cluster.work.Go(func() {
		logs, _ := g.cluster.ranges(all)
		found <- logs
	})
	var logs map[processor.TopicPartition]Range
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case logs = <-found:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known := map[processor.TopicPartition]Range{}
	for _, tp := range all {
		if r, ok := logs[tp]; ok {
			g.logs[tp] = r
		}
		if r, ok := g.logs[tp]; ok {
			known[tp] = r
		}
	}
	return known
}

// follow notes how far a store that is behind has come.
func (g *group) follow(tp processor.TopicPartition, position int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.followed[tp] = position
}

// working notes that a worker has all the state of a task.
func (g *group) working(p *Port, id processor.TaskID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.leases[id]; l != nil && l.port == p && l.role == runtime.Active {
		l.working = true
	}
}
