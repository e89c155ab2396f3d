package processor

// warmed is of how many records the stores are told the keys ahead.
const warmed = 16

// warm tells the stores which keys are likely to be looked up next.
func (t *Task) warm(in *input) {
	if len(t.foreseen) == 0 {
		return
	}
	keys := make([][]byte, 0, warmed)
	records := in.batches[0].records[in.head:]
	for i := range records[:min(len(records), warmed)] {
		if records[i].Key != nil {
			keys = append(keys, records[i].Key)
		}
	}
	for _, s := range t.foreseen {
		s.Warm(keys)
	}
}
