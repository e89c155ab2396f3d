package scenario

import "slices"

// Prefixed returns the scenario with other names: all operators, topics and stores begin with the prefix.
func (s Scenario) Prefixed(prefix string) Scenario {
	s.Ops, s.In = slices.Clone(s.Ops), slices.Clone(s.In)
	for i := range s.Ops {
		op := &s.Ops[i]
		op.ID = prefix + op.ID
		op.From = slices.Clone(op.From)
		for j := range op.From {
			op.From[j] = prefix + op.From[j]
		}
	}
	for i := range s.In {
		if s.In[i].Topic != Clock {
			s.In[i].Topic = prefix + s.In[i].Topic
		}
	}
	return s
}

// Topics returns the names of the topics that the scenario's operators read, in the order of their declaration.
func (s Scenario) Topics() (names []string) {
	for _, op := range s.Ops {
		if slices.Contains([]string{"stream", "table", "globaltable"}, op.Op) {
			names = append(names, op.From[0])
		}
	}
	return names
}
