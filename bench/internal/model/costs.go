package model

import "math"

// Term is one figure of the calculation.
type Term struct {
	Section string
	Name    string
	Value   float64
	Unit    string
	Formula string // in the names of other terms, of constants and of the cluster's settings
}

// Costs is the whole calculation, in the order in which its terms use one another.
type Costs []Term

// Of returns the value of a term, NaN if there is none of that name.
func (c Costs) Of(name string) float64 {
	for _, t := range c {
		if t.Name == name {
			return t.Value
		}
	}
	return math.NaN()
}

// Costs calculates what the cluster costs. Check must have let it pass.
func (c Cluster) Costs() Costs {
	s := &sheet{Cluster: c, share: c.share()}
	s.work()
	s.commits()
	s.cpu()
	s.memory()
	s.disk()
	s.brokers()
	s.traffic()
	s.recovery()
	return s.costs
}

// sheet is a calculation under way.
type sheet struct {
	Cluster
	share
	section string
	costs   Costs
}

// put writes a term down and returns its value.
func (s *sheet) put(name string, value float64, unit, formula string) float64 {
	s.costs = append(s.costs, Term{s.section, name, value, unit, formula})
	return value
}

func (s *sheet) of(name string) float64 { return s.costs.Of(name) }

func (s *sheet) work() {
	s.section = "work of the fullest process"
	s.put("tasks", s.tasks, "", "partitions / processes, rounded up")
	s.put("busy workers", s.workers, "", "min(workers, tasks)")
	s.put("records", s.tasks*s.task, "/s", "tasks * rate / partitions")
	s.put("keys", s.tasks*s.keys, "", "tasks * keys / partitions")
}

// commits finds out how often a worker commits. Input that comes more slowly than it is processed is drained again and again,
// and each time committed; else the commit interval is used up.
func (s *sheet) commits() {
	s.section = "commits"
	rate, keys := s.perWorker*s.task, s.perWorker*s.keys
	interval := max(s.CommitInterval.Seconds()/drainShare, s.CommitTime.Seconds(), 1/rate)
	cpu := func() float64 {
		return recordCPU + entryCPU*distinct(keys, rate*interval)/(rate*interval) + transactionCPU/(rate*interval)
	}
	if s.Backlog || rate*cpu() >= 1 {
		interval = max(s.CommitInterval, s.CommitTime).Seconds()
	}
	s.put("commit every", 1000*interval, "ms", "max(commit interval / drainShare, commit time, 1 / records of a worker); max(commit interval, commit time) if its input is never drained")
	s.put("records of a commit", rate*interval, "", "records of a worker * commit every")
	s.put("entries of a commit", distinct(keys, rate*interval), "", "distinct keys: k * (1 - exp(-records / k)) for the k keys of a worker")
	s.put("entries per record", distinct(keys, rate*interval)/(rate*interval), "", "entries of a commit / records of a commit")
}

func (s *sheet) cpu() {
	s.section = "CPU of the fullest process"
	records := s.of("records")
	n := s.FlushInterval.Seconds() * s.task
	n = min(n, s.FlushBytes/s.layerBytes()) // at the most so many records until a flush
	s.put("flushed per record", s.durable(distinct(s.keys, n)/n), "", "distinct keys between two flushes of a store / records between them; 0 in memory")
	s.put("CPU of records", records*recordCPU, "cores", "records * recordCPU")
	s.put("CPU of entries", records*s.of("entries per record")*entryCPU, "cores", "records * entries per record * entryCPU")
	s.put("CPU of flushes", records*s.of("flushed per record")*flushCPU, "cores", "records * flushed per record * flushCPU")
	s.put("CPU of commits", s.workers/s.seconds()*transactionCPU, "cores", "busy workers / commit every * transactionCPU")
	s.put("CPU at rest", restCPU, "cores", "restCPU: heartbeats, empty fetches")
	sum := restCPU
	for _, name := range []string{"CPU of records", "CPU of entries", "CPU of flushes", "CPU of commits"} {
		sum += s.of(name)
	}
	s.put("CPU", sum, "cores", "the sum")
}

// seconds is the time between two commits of a worker.
func (s *sheet) seconds() float64 { return s.of("commit every") / 1000 }

// durable is a cost that only stores on disk have.
func (s *sheet) durable(x float64) float64 {
	if s.Memory {
		return 0
	}
	return x
}

// layerBytes is what an entry takes in the layers above a backend.
func (s *sheet) layerBytes() float64 { return layerEntry + s.KeyBytes + outside(s.StateBytes) }

// outside is what a value takes beside an entry that has room for a small one.
func outside(value float64) float64 {
	if value <= inlineValue {
		return 0
	}
	return value
}

func (s *sheet) memory() {
	s.section = "memory of the fullest process"
	commit := s.of("entries of a commit") * s.workers
	stores := 0.0
	if s.Memory {
		stores = s.of("keys") * float64(1+s.Standbys) * (memoryEntry + s.KeyBytes + outside(s.StateBytes))
	}
	n := s.FlushInterval.Seconds() * s.task
	unflushed := s.durable(min(s.FlushBytes, distinct(s.keys, n)*s.layerBytes()) * s.tasks)
	s.put("stores in memory", stores/mb, "MB", "keys * (1 + standbys) * (memoryEntry + key + value beyond inlineValue)")
	s.put("uncommitted layers", 2*commit*s.layerBytes()/mb, "MB", "2 * busy workers * entries of a commit * (layerEntry + key + value beyond inlineValue)")
	s.put("unflushed layers", 2*unflushed/mb, "MB", "2 * tasks * min(flush bytes, distinct keys in a flush interval * (layerEntry + ...)): one fills while the other is flushed")
	s.put("records of commits", 2*commit*(commitRecord+s.KeyBytes+s.StateBytes)/mb, "MB", "2 (changelog, output) * busy workers * entries of a commit * (commitRecord + key + value)")
	heap := 0.0
	for _, name := range []string{"stores in memory", "uncommitted layers", "unflushed layers", "records of commits"} {
		heap += s.of(name)
	}
	s.put("pages of files", s.durable(s.diskBytes()*s.tasks*float64(1+s.Standbys))/mb, "MB", "disk: bbolt maps its files, and the kernel takes their pages back when it needs them")
	s.put("peak memory", baseMemory+heapGrowth*heap+s.of("pages of files"), "MB", "baseMemory + heapGrowth * (stores + layers + records) + pages of files")
}

// diskBytes is the file of one task.
func (s *sheet) diskBytes() float64 {
	pages := s.keys * (diskEntry + s.KeyBytes + s.StateBytes) / pageFill
	n := min(s.FlushInterval.Seconds()*s.task, s.FlushBytes/s.layerBytes())
	touched := -math.Expm1(-distinct(s.keys, n) / (pages / pageBytes))
	return pages*(1+touched) + fileBytes
}

func (s *sheet) disk() {
	s.section = "disk of the fullest process"
	s.put("file of a task", s.durable(s.diskBytes())/mb, "MB", "p * (1 + share of pages that a flush touches) + fileBytes; p = keys of a task * (diskEntry + key + value) / pageFill")
	s.put("disk", s.of("file of a task")*s.tasks*float64(1+s.Standbys), "MB", "file of a task * tasks * (1 + standbys)")
}
