package model

import "math"

// brokers counts what the brokers are asked for by all processes.
func (s *sheet) brokers() {
	s.section = "requests to all brokers"
	processes, brokers := float64(s.Processes), float64(s.Brokers)
	busy := min(processes*s.workers, float64(s.Partitions))
	transactions := s.put("transactions", busy/s.seconds(), "/s", "busy workers of all processes / commit every")
	touched := s.put("partitions of a commit", 2*math.Min(s.perWorker, s.of("records of a commit")), "", "2 (changelog, output) * tasks of a worker, as far as they have records")
	led := brokers * -math.Expm1(touched*math.Log1p(-1/math.Max(brokers, 1+1e-9)))
	s.put("requests of a commit", fixedRequests+led, "", "fixedRequests + a Produce for each broker that leads one of the partitions")
	s.put("commits ask", transactions*s.of("requests of a commit"), "/s", "transactions * requests of a commit")
	s.put("markers", transactions*(touched+1), "/s", "transactions * (partitions of a commit + 1 for the positions): written by the brokers among themselves")

	read := s.tasks * float64(1+s.Standbys)
	loops := s.put("fetch loops", processes*min(lanes*brokers, read), "", "processes * min(lanes * brokers, partitions that a process reads)")
	arrivals := s.Rate/s.AtOnce + transactions*touched/2*float64(s.Standbys)
	s.put("fetches", loops*min(max(arrivals/loops, 1/fetchWait), 1/fetchSeconds), "/s", "fetch loops * (what arrives at each, records sent at once or a commit to be followed; from 1 / fetchWait to 1 / fetchSeconds)")
	s.put("heartbeats", processes/min(s.SessionTimeout.Seconds()/10, beatSeconds), "/s", "processes / beatSeconds")
	follows := min(float64(s.Standbys), 1)
	s.put("other requests", processes*(2*brokers*follows/checkSeconds+3/float64(metadataSeconds)), "/s", "processes * (2 ListOffsets to each broker every checkSeconds, with standbys; metadata of 3 clients)")
	sum := 0.0
	for _, name := range []string{"commits ask", "fetches", "heartbeats", "other requests"} {
		sum += s.of(name)
	}
	s.put("requests", sum, "/s", "the sum")
	s.put("requests of a broker", sum/brokers, "/s", "requests / brokers")
}

// traffic counts bytes at the brokers.
func (s *sheet) traffic() {
	s.section = "traffic of all brokers"
	written := s.Rate * s.of("entries per record")
	batches := s.of("transactions") * s.of("partitions of a commit") * batchBytes
	changelog := s.put("changelogs written", (written*(s.KeyBytes+s.StateBytes+recordBytes)+batches/2)/mb, "MB/s", "rate * entries per record * (key + state + recordBytes) + batchBytes of each partition of a commit")
	in := s.put("bytes in", 2*changelog+s.of("requests")*requestBytes/mb, "MB/s", "2 * changelogs written (changelog, output) + requests * requestBytes")
	out := s.put("bytes out", (s.Rate*(s.KeyBytes+s.ValueBytes+recordBytes))/mb+changelog*float64(s.Standbys), "MB/s", "rate * (key + value + recordBytes) + standbys * changelogs written")
	replicated := s.put("replicated", 2*changelog*float64(s.Replicas-1), "MB/s", "2 * changelogs written * (replicas - 1), between brokers")
	s.put("traffic of a broker", (in+out+2*replicated)/float64(s.Brokers), "MB/s", "(bytes in + bytes out + 2 * replicated) / brokers")
}

// recovery says how long tasks rest.
func (s *sheet) recovery() {
	s.section = "recovery"
	s.put("changelog of a task", s.changelog(), "records", "2 * keys of a task (the cleaner waits until half is old) + what is written into the newest segment, min(segment bytes / (key + state + recordBytes), segmentSeconds * entries/s), at most")
	cores := min(float64(s.Workers), s.tasks)
	rate := s.put("restore rate", restoreRate*cores, "/s", "restoreRate * min(workers, tasks) of a process")
	written := s.task * s.of("entries per record")
	tail := s.put("tail on a restart", s.durable(min(s.FlushInterval.Seconds()*written, s.FlushBytes/s.layerBytes()))*s.tasks, "records", "tasks * min(flush interval * entries/s of a task, flush bytes): half of it on average")
	open := s.durable(s.diskBytes()*s.tasks) / openRate
	whole := s.changelog() * s.tasks
	if s.Memory {
		tail = whole
	}
	s.put("restart", startSeconds+open/cores+tail/rate, "s", "startSeconds + files / (openRate * cores) + tail on a restart / restore rate; in memory the whole changelogs")
	s.put("restart without state", startSeconds+whole/rate, "s", "startSeconds + changelogs of a process / restore rate")
	takeover := s.SessionTimeout.Seconds() + rebalanceSeconds
	s.put("take-over by standbys", takeover+written*(fetchWait+s.seconds())*s.tasks/rate, "s", "session timeout + rebalanceSeconds + what is written in fetchWait and a commit / restore rate")
	inherits := s.tasks
	if s.Processes > 1 {
		inherits = math.Ceil(s.tasks / float64(s.Processes-1))
	}
	rate = restoreRate * min(float64(s.Workers), inherits)
	s.put("take-over without", takeover+s.changelog()*inherits/rate, "s", "session timeout + rebalanceSeconds + changelogs of tasks / (processes - 1), rounded up, / restore rate")
}

// changelog is how many records a task's changelog holds at the most, once it is older than its newest segment.
func (s *sheet) changelog() float64 {
	written := s.task * s.of("entries per record")
	return 2*s.keys + min(s.SegmentBytes/(s.KeyBytes+s.StateBytes+recordBytes), segmentSeconds*written)
}

// Limit is a term that is beyond a bound.
type Limit struct {
	Term  string
	Value float64
	Bound float64
	Unit  string
}

// Limits returns what is beyond its bound.
func (c Cluster) Limits(costs Costs) (beyond []Limit) {
	recovery := "take-over without"
	if c.Standbys > 0 {
		recovery = "take-over by standbys"
	}
	for _, l := range []Limit{
		{"CPU", costs.Of("CPU"), float64(c.Workers), "cores"},
		{"requests of a broker", costs.Of("requests of a broker"), brokerRequests, "/s"},
		{"traffic of a broker", costs.Of("traffic of a broker"), brokerMBytes, "MB/s"},
		{recovery, costs.Of(recovery), longRecovery, "s"},
		{"restart without state", costs.Of("restart without state"), longRecovery, "s"},
	} {
		if l.Value > l.Bound {
			beyond = append(beyond, l)
		}
	}
	return beyond
}
