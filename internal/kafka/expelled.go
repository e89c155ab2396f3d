package kafka

// expelled ends a membership that the broker does not know of any more. Mostly the next heartbeat would tell sarama the same.
// But it sends none while it waits for the answer to a join, and that answer may be lost for good, as when a connection is
// broken without a word. Until that request timed out, after RebalanceTimeout and more, the process would work on tasks that
// others have by now, and every commit would be in vain.
func (g *group) expelled(m member) {
	g.mu.Lock()
	current := g.session != nil && g.session.Context().Err() == nil && g.member().id == m.id
	end := g.endMembership
	g.mu.Unlock()
	if !current {
		return // it has ended already
	}
	g.cluster.cfg.Logger.Warn("the group does not know this process any more, joining again", "member", m.id)
	end()
	g.dialer.reset()
}
