package processor

// chunkOutputs is how many outputs are allocated at once.
const chunkOutputs = 256

// Chunks is memory for outputs that goes from tasks to commits and back. The tasks of a worker share it: most of them write
// when they prepare a commit, one after the other. It is not safe for concurrent use; nil makes all anew.
type Chunks struct{ free [][]Output }

func (c *Chunks) take() []Output {
	if c == nil || len(c.free) == 0 {
		return make([]Output, 0, chunkOutputs)
	}
	last := len(c.free) - 1
	chunk := c.free[last]
	c.free[last] = nil
	c.free = c.free[:last]
	return chunk
}

// give takes chunks that nobody uses any more.
func (c *Chunks) give(chunks ...[]Output) {
	for _, chunk := range chunks {
		clear(chunk)
		if c != nil && cap(chunk) == chunkOutputs {
			c.free = append(c.free, chunk[:0])
		}
	}
}

// trim keeps no more than what a few commits like the latest one need, which has used so many.
func (c *Chunks) trim(used int) {
	const few, least = 2, 16
	if keep := max(least, few*used); c != nil && len(c.free) > keep {
		clear(c.free[keep:])
		c.free = c.free[:keep]
	}
}
