package contender

import (
	"bytes"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/wire"
)

// row takes the rows of a block into the table and the changelog. A cell's key is its row.
func (p *plain) row(b wire.Block) {
	t, to := &p.tables[b.Partition], wire.Place{Topic: p.changelog, Partition: b.Partition}
	at := time.Now()
	b.Each(func(key, value []byte, _ int64) {
		t.cells[string(key)] = &cell{key: bytes.Clone(value)}
		p.producer.Add(to, key, value, at)
	})
}

// join sends each record of a block with the row of its key to the output.
func (p *plain) join(b wire.Block) {
	t, to := &p.tables[b.Partition], wire.Place{Topic: p.job.Out, Partition: b.Partition}
	at := time.Now()
	b.Each(func(key, value []byte, _ int64) {
		if row := t.cells[string(key)]; row != nil {
			joined := make([]byte, 0, len(row.key)+1+len(value))
			p.producer.Add(to, key, append(append(append(joined, row.key...), '|'), value...), at)
		}
	})
}
