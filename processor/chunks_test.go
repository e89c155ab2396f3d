package processor

import (
	"fmt"
	"testing"
)

// Outputs come in the order in which they were added, without those of steps that were rolled back, over the edges of chunks;
// and the memory of a commit serves the next one.
func TestOutputsInChunks(t *testing.T) {
	t.Parallel()
	var chunks Chunks
	o := Outputs{spares: &chunks}
	add := func(from, n int) {
		o.begin()
		for i := range n {
			o.add(Output{Key: fmt.Append(nil, from+i), Value: []byte("v")})
		}
	}
	for round := range 3 {
		var c Commit
		want := 0
		for _, n := range []int{0, 1, chunkOutputs - 1, 3 * chunkOutputs, 5} {
			add(want, n)
			want += n
			for _, undone := range []int{0, 1, chunkOutputs, 2*chunkOutputs + 7} {
				before := o.bytes
				add(-1, undone)
				o.rollback()
				if o.count != want || o.bytes != before {
					t.Fatalf("%d outputs of %d bytes after a rollback, want %d of %d", o.count, o.bytes, want, before)
				}
			}
		}
		c.Records = o.move(c.Records)
		if o.count != 0 || o.bytes != 0 || len(o.chunks) != 0 {
			t.Fatalf("%d outputs are left", o.count)
		}
		n := 0
		for r := range c.Outputs() {
			if string(r.Key) != fmt.Sprint(n) {
				t.Fatalf("round %d: output %d is %s", round, n, r.Key)
			}
			n++
		}
		if n != want {
			t.Fatalf("%d outputs, want %d", n, want)
		}
		c.Positions = []Position{{Offset: 1}}
		c.Reset(&chunks)
		if !c.Empty() || len(chunks.free) < want/chunkOutputs {
			t.Fatalf("%d chunks are at hand after a commit of %d outputs", len(chunks.free), want)
		}
		for _, chunk := range chunks.free {
			if len(chunk) != 0 || chunk[:1][0].Key != nil {
				t.Fatal("a chunk holds on to its outputs")
			}
		}
	}
	chunks.give(make([][]Output, 3)...) // not of its own
	for range 100 {
		chunks.give(make([]Output, 0, chunkOutputs))
	}
	if chunks.trim(1); len(chunks.free) != 16 {
		t.Errorf("%d chunks are kept after a small commit", len(chunks.free))
	}
}
