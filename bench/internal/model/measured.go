package model

// Point is something that was measured, and the cluster that it was measured of.
type Point struct {
	Name    string
	Command string // that measures it again
	Cluster Cluster
	Term    string
	Value   float64
	Factor  float64 // within which the calculation agrees
}

// Measured is what was measured, on 2 cores with the broker on the same machine: counts, the restore and the kills on a quiet one, the
// traffic on a busy one. The constants of CPU, memory and restores were chosen by these points; what is independent of them is how the
// points hang together, and the restart, the take-over and the traffic.
func Measured() []Point {
	const (
		counts   = "go run ./bench -workload 'count-*' -contender millrace,millrace-memory"
		restore  = "go run ./bench -workload restore -contender millrace"
		recovery = "go run ./bench recovery -workload restart,takeover -contender millrace"
		traffic  = "MILLRACE_BROKERS=... go test -run xxx -bench Traffic -benchtime 5s ./bench/internal/model"
		aQuarter = 1.25
		half     = 1.5
	)
	return []Point{
		{"1,000 keys, CPU", counts, flatOut(1_000, 1.87e6, false), "CPU", 1.87e6 * 0.63e-6, half},
		{"100,000 keys, CPU", counts, flatOut(100_000, 726e3, false), "CPU", 726e3 * 2.19e-6, half},
		{"1,000,000 keys, CPU", counts, flatOut(1_000_000, 447e3, false), "CPU", 447e3 * 3.49e-6, half},
		{"1,000,000 keys in memory, CPU", counts, flatOut(1_000_000, 448e3, true), "CPU", 448e3 * 3.46e-6, half},
		{"1,000 keys, peak memory", counts, flatOut(1_000, 1.87e6, false), "peak memory", 62, half},
		{"100,000 keys, peak memory", counts, flatOut(100_000, 726e3, false), "peak memory", 282, half},
		{"100,000 keys in memory, peak memory", counts, flatOut(100_000, 613e3, true), "peak memory", 285, half},
		{"1,000,000 keys, peak memory", counts, flatOut(1_000_000, 447e3, false), "peak memory", 719, half},
		{"1,000,000 keys in memory, peak memory", counts, flatOut(1_000_000, 448e3, true), "peak memory", 627, half},
		{"changelog of 1,000,000 keys, restored", restore, flatOut(1_000_000, 1, false), "restore rate", 1.21e6, aQuarter},
		{"restart after kill -9, 1,000,000 keys", recovery, steady(1), "restart", 0.39, half},
		{"take-over by a standby after kill -9, 1,000,000 keys", recovery, steady(2), "take-over by standbys", 9.95, aQuarter},
		{"at rest", traffic, sent(0.001, 1), "fetches", 18.9, aQuarter},
		{"at rest", traffic, sent(0.001, 1), "heartbeats", 3.41, aQuarter},
		{"17 records/s, one by one", traffic, sent(17, 1), "transactions", 16.9, aQuarter},
		{"17 records/s, one by one", traffic, sent(17, 1), "requests of a commit", 5.1, aQuarter},
		{"17 records/s, one by one", traffic, sent(17, 1), "CPU", 0.0335, aQuarter},
		{"654 records/s, 5 at once", traffic, sent(654, 5), "fetches", 130, aQuarter},
		{"654 records/s, 5 at once", traffic, sent(654, 5), "requests of a commit", 6.5, half}, // AddPartitionsToTxn made again: see constants.go
		{"11,148 records/s, 85 at once", traffic, sent(11_148, 85), "bytes out", 1.37, aQuarter},
	}
}

// one is the benchmark's application: a process with two workers, four partitions, one broker.
func one(keys, rate float64) Cluster {
	c := Default()
	c.Processes, c.Workers, c.Partitions, c.Brokers, c.Replicas = 1, 2, 4, 1, 1
	c.Keys, c.KeyBytes, c.Rate = keys, 8, rate
	return c
}

// flatOut has as much input as it can take: no commit finds it drained.
func flatOut(keys, rate float64, memory bool) Cluster {
	c := one(keys, rate)
	c.Memory, c.Backlog = memory, true
	return c
}

// steady is what the benchmark kills.
func steady(processes int) Cluster {
	c := one(1_000_000, 2_000)
	c.Processes, c.Standbys = processes, processes-1
	return c
}

// sent is the benchmark of traffic: 16-byte keys, and so many records for a fetch loop at once.
func sent(rate, atOnce float64) Cluster {
	c := one(100_000, rate)
	c.KeyBytes, c.AtOnce, c.Memory = 16, atOnce, true
	return c
}
