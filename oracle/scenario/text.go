package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// String shows the topology, one operator a line, and the numbered steps, for people.
func (s Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s\n", s.ID)
	for _, op := range s.Ops {
		fmt.Fprintf(&b, "  %s\n", op)
	}
	for i, step := range s.In {
		fmt.Fprintf(&b, "  %3d  %s\n", i, step)
	}
	return b.String()
}

// String shows the operator as a call.
func (o Op) String() string {
	args := slices.Clone(o.From)
	for name, value := range map[string]string{"fn": o.Fn, "key": o.Key, "emit": o.Emit, "until": o.Until} {
		if value != "" {
			args = append(args, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.N)) {
		args = append(args, fmt.Sprintf("%s=%d", name, o.N[name]))
	}
	if len(o.Branches) > 0 {
		args = append(args, "branches="+strings.Join(o.Branches, "|"))
	}
	if o.Store {
		args = append(args, "store")
	}
	slices.Sort(args[len(o.From):])
	return fmt.Sprintf("%s = %s(%s)", o.ID, o.Op, strings.Join(args, ", "))
}

// String shows a record as "topic key=value @time".
func (s Step) String() string {
	if s.Topic == Clock {
		return fmt.Sprintf("wall clock +%d", s.Time)
	}
	return fmt.Sprintf("%s %s=%s @%d", s.Topic, show(s.Key), show(s.Value), s.Time)
}

// String shows a written record as a step is shown, with the number of the step that it follows, and with the origin if that
// is another one.
func (r Row) String() string {
	line := fmt.Sprintf("%s=%s @%d", show(r.Key), show(r.Value), r.Time)
	if r.Topic == "" {
		return line
	}
	if r.Origin != strconv.Itoa(r.Step) {
		line += fmt.Sprintf(" from %q", r.Origin)
	}
	return fmt.Sprintf("%3d  %s %s", r.Step, r.Topic, line)
}

func show(s *string) string {
	if s == nil {
		return "null"
	}
	if *s == "" {
		return `""`
	}
	return *s
}
