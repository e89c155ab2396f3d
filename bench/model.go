package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/millrace-streams/millrace/bench/internal/model"
)

// modelled prints what a cluster costs, as calculated and as simulated.
func modelled(args []string, out io.Writer) error {
	c := model.Default()
	f := flag.NewFlagSet("bench model", flag.ExitOnError)
	f.IntVar(&c.Processes, "processes", c.Processes, "processes of the application")
	f.IntVar(&c.Workers, "workers", c.Workers, "workers of each process, each with a core")
	f.IntVar(&c.Partitions, "partitions", c.Partitions, "partitions of the input: as many tasks")
	f.IntVar(&c.Standbys, "standbys", c.Standbys, "replicas of each task in other processes")
	f.IntVar(&c.Racks, "racks", c.Racks, "racks of the processes")
	f.IntVar(&c.Brokers, "brokers", c.Brokers, "brokers that lead the partitions")
	f.IntVar(&c.Replicas, "replicas", c.Replicas, "replicas of each partition in Kafka")
	f.Float64Var(&c.Keys, "keys", c.Keys, "keys, drawn evenly")
	f.Float64Var(&c.KeyBytes, "key-bytes", c.KeyBytes, "bytes of a key")
	f.Float64Var(&c.ValueBytes, "value-bytes", c.ValueBytes, "bytes of the value of an input record")
	f.Float64Var(&c.StateBytes, "state-bytes", c.StateBytes, "bytes of a value in the store, the changelog and the output")
	f.Float64Var(&c.Rate, "rate", c.Rate, "input records/s")
	f.Float64Var(&c.AtOnce, "at-once", c.AtOnce, "records that producers send to a partition at once")
	f.BoolVar(&c.Backlog, "backlog", false, "there is always more input than is processed")
	f.BoolVar(&c.Memory, "memory", false, "stores in memory instead of bbolt")
	f.DurationVar(&c.CommitInterval, "commit-interval", c.CommitInterval, "the longest time between commits")
	f.DurationVar(&c.CommitTime, "commit-time", c.CommitTime, "that the brokers take for a transaction")
	f.DurationVar(&c.SessionTimeout, "session-timeout", c.SessionTimeout, "until a silent process is dead")
	f.Float64Var(&c.SegmentBytes, "segment-bytes", c.SegmentBytes, "segment.bytes of the changelogs")
	seed := f.Uint64("seed", 1, "of the sizes of the simulated tasks")
	_ = f.Parse(args) // it exits on errors
	if f.NArg() > 0 {
		return fmt.Errorf("bad arguments: see -help")
	}
	if err := c.Check(); err != nil {
		return err
	}
	costs := c.Costs()
	if err := costs.Print(out); err != nil {
		return err
	}
	if err := c.Simulate(out, *seed); err != nil {
		return err
	}
	for _, l := range c.Limits(costs) {
		fmt.Fprintf(out, "beyond the bound: %s, %s instead of %s %s\n", l.Term, model.Number(l.Value), model.Number(l.Bound), l.Unit)
	}
	return nil
}
