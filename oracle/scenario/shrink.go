package scenario

// Shrink leaves out steps, many at a time and then one by one, for as long as fails says that what is left still fails. fails
// must be true of s. The result cannot be made smaller by leaving out any single step.
func Shrink(s Scenario, fails func(Scenario) bool) Scenario {
	for size := len(s.In) / 2; size > 0; {
		smaller := false
		for at := 0; at < len(s.In); {
			try := s
			try.In = append(append([]Step{}, s.In[:at]...), s.In[min(at+size, len(s.In)):]...) // never nil
			if fails(try) {
				s, smaller = try, true
			} else {
				at += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return s
}
