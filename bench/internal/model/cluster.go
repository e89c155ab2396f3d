package model

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Cluster is what the costs are asked of.
type Cluster struct {
	Processes  int
	Workers    int // of each process, each with a core to itself
	Partitions int // of the input; as many tasks, changelog partitions and output partitions
	Brokers    int // that lead the partitions, evenly
	Replicas   int // of each partition in Kafka
	Standbys   int // of each task
	Racks      int // of the processes, in turn

	Keys       float64 // drawn evenly
	KeyBytes   float64
	ValueBytes float64 // of an input record
	StateBytes float64 // of a value in the store, and so in the changelog and the output
	Rate       float64 // input records/s, of all partitions
	AtOnce     float64 // of them, that producers send to a partition at once
	Backlog    bool    // there is always more input than is processed: none of it is ever drained

	Memory         bool // stores in memory instead of bbolt
	CommitInterval time.Duration
	CommitTime     time.Duration // that the brokers take for a transaction, from its first request to its last answer
	FlushInterval  time.Duration
	FlushBytes     float64
	SessionTimeout time.Duration
	SegmentBytes   float64 // of the changelogs: the newest segment is not compacted
}

// Default is a cluster with the settings that an application has unless it says otherwise.
func Default() Cluster {
	return Cluster{
		Processes: 3, Workers: 4, Partitions: 24, Brokers: 3, Replicas: 3, Racks: 1,
		Keys: 1_000_000, KeyBytes: 16, ValueBytes: 100, StateBytes: 8, Rate: 10_000, AtOnce: 1,
		CommitInterval: 100 * time.Millisecond, CommitTime: 16 * time.Millisecond, FlushInterval: 10 * time.Second, FlushBytes: 32 << 20,
		SessionTimeout: 10 * time.Second, SegmentBytes: 1 << 30,
	}
}

// ErrCluster is wrapped by what Check returns.
var ErrCluster = errors.New("model: there is no such cluster")

// Check refuses what cannot be calculated.
func (c Cluster) Check() error {
	whole := []struct {
		name        string
		n, from, to int
	}{
		{"processes", c.Processes, 1, 1000}, {"workers", c.Workers, 1, 1000}, {"partitions", c.Partitions, 1, 20_000},
		{"brokers", c.Brokers, 1, 1000}, {"replicas", c.Replicas, 1, c.Brokers}, {"standbys", c.Standbys, 0, 10}, {"racks", c.Racks, 1, 100},
	}
	var errs []error
	for _, w := range whole {
		if w.n < w.from || w.n > w.to {
			errs = append(errs, fmt.Errorf("%w: %d %s, not %d to %d", ErrCluster, w.n, w.name, w.from, w.to))
		}
	}
	for name, x := range map[string]float64{
		"keys": c.Keys, "bytes of a key": c.KeyBytes, "bytes of a value": c.ValueBytes, "bytes of a state": c.StateBytes, "records/s": c.Rate, "records at once": c.AtOnce, "commit time": float64(c.CommitTime),
		"commit interval": float64(c.CommitInterval), "flush interval": float64(c.FlushInterval), "bytes of a flush": c.FlushBytes,
		"session timeout": float64(c.SessionTimeout), "bytes of a segment": c.SegmentBytes,
	} {
		if !(x > 0) || math.IsInf(x, 1) {
			errs = append(errs, fmt.Errorf("%w: %s of %g", ErrCluster, name, x))
		}
	}
	return errors.Join(errs...)
}

// share is the work of the process that has the most of it, and of the worker in it that has.
type share struct {
	tasks, workers float64 // of the process; workers that have a task
	perWorker      float64 // tasks of a worker
	task           float64 // records/s of a task
	keys           float64 // of a task
}

func (c Cluster) share() share {
	tasks := math.Ceil(float64(c.Partitions) / float64(c.Processes))
	workers := min(float64(c.Workers), tasks)
	return share{
		tasks: tasks, workers: workers, perWorker: math.Ceil(tasks / workers),
		task: c.Rate / float64(c.Partitions), keys: c.Keys / float64(c.Partitions),
	}
}

// distinct is how many different keys n records are expected to have.
func distinct(keys, n float64) float64 { return keys * -math.Expm1(-n/keys) }
