package testdriver

import (
	"math"

	"github.com/millrace-streams/millrace/internal/runtime"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/store/memory"
)

// openGlobals begins the life of the global tables, which are read from the beginning of their topics.
func (d *Driver) openGlobals() {
	d.globals = runtime.NewGlobals(d.topo.Globals(), inMemory, processor.Options{App: d.cfg.app, Policy: d.cfg.policy, Dropped: d.drop}, d.stores)
	d.globalAt = map[processor.TopicPartition]int64{}
}

// followGlobals applies what was committed to the topics of global tables, before any task's next record.
func (d *Driver) followGlobals() error {
	for _, topic := range d.globals.Topics() {
		for p := range d.cluster.Partitions(topic) {
			tp := processor.TopicPartition{Topic: topic, Partition: p}
			records, next, err := d.cluster.Read(tp, d.globalAt[tp], math.MaxInt)
			if err != nil {
				return err
			}
			d.globalAt[tp] = next
			if err := d.globals.Take(runtime.Fetched{TopicPartition: tp, Records: records, Next: next}); err != nil {
				return err
			}
		}
	}
	return nil
}

// inMemory is where global tables live: they are read anew at each start.
func inMemory() store.Backend { return memory.New() }
