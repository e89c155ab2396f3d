package processor

// Shared returns what a node of the task has shared under a key, nil if nothing. Nodes are bound from the leaves up, so one
// that reads what a node above it holds finds it, or makes it, here.
func (t *Task) Shared(key any) any { return t.shared[key] }

// Share keeps a value under a key for the other nodes of the task. Keys are pointers, or of types of their own package.
func (t *Task) Share(key, value any) {
	if t.shared == nil {
		t.shared = map[any]any{}
	}
	t.shared[key] = value
}

// At calls fn with another time of the record in work, as when an older row is looked at on its behalf.
func (t *Task) At(time int64, fn func() error) error {
	now := t.recordTime
	t.recordTime = time
	defer func() { t.recordTime = now }()
	return fn()
}
