package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// Reports returns scenarios that once went wrong in some stream processor. The names say which mistake was made.
func Reports() []Scenario {
	return []Scenario{
		windowed("tumbling-edge-without-grace", "tumbling.count", "size=10 grace=0", "in x=v@10; in k=v@9"),
		windowed("tumbling-edge-with-grace", "tumbling.count", "size=10 grace=1", "in x=v@10; in k=v@9; in x=v@11; in k=v@9"),
		windowed("hopping-some-windows-closed", "hopping.count", "size=10 advance=5 grace=0", "in x=v@10; in k=v@9; in k=v@6; in x=v@14; in k=v@9"),
		windowed("sliding-without-grace", "sliding.count", "size=10 grace=0", "in k=v@0; in k=v@5; in k=v@10; in k=v@15"),
		windowed("sliding-with-grace", "sliding.count", "size=10 grace=1000", "in k=v@0; in k=v@5; in k=v@10; in k=v@15"),
		windowed("sliding-early-records", "sliding.count", "size=50 grace=0", "in k=v@3; in k=v@7; in k=v@400; in k=v@200"),
		windowed("poison-timestamp", "tumbling.count", "size=10 grace=0",
			"in k=v@1; in k=v@2; in k=v@3; in k=v@4; in k=v@5; in k=p@4000000000000; in k=v@6; in k=v@7; in k=v@8; in k=v@9"),
		windowed("silence-closes-nothing", "tumbling.count close", "size=10 grace=0", "in k=v@1; in k=v@2; in k=v@3; @60000; in q=v@100"),
		windowed("session-merge-of-two", "session.aggregate", "size=5 grace=20", "in k=a@0; in k=b@10; in k=c@5; in k=d@16; in k=e@100"),
		joined("left-join-not-eager", "streamleft", "before=10 after=10 grace=0",
			"left k=a@0; right k=b@5; left q=c@0; left z=d@10; left z=e@11; left z=f@30"),
		joined("asymmetric-after", "streamleft", "before=0 after=100 grace=0", "left k=a@0; left z=o@50; right k=b@90; left z=o@300; left z=o@500"),
		joined("asymmetric-before", "streamleft", "before=100 after=0 grace=0", "right k=b@0; left z=o@50; left k=a@90; left z=o@300; left z=o@500"),
		joined("asymmetric-outer", "streamouter", "before=0 after=100 grace=0",
			"left k=a@0; right q=b@0; left z=o@50; left z=o@99; left z=o@100; left z=o@101; left z=o@300; right z=o@500"),
		joined("asymmetric-outer-mirrored", "streamouter", "before=100 after=0 grace=0",
			"left k=a@0; right q=b@0; left z=o@50; left z=o@99; left z=o@100; left z=o@101; left z=o@300; right z=o@500"),
		foreignKeyed("foreign-key-from-null", "foreignjoin", "right a=r@0; left p=-1@1; left p=a1@2; left p=-2@3"),
		foreignKeyed("foreign-key-changes", "foreignleft", "right a=r@0; left p=a1@1; left p=b1@2; right b=s@3; right a=t@4; left p=-@5; right b=null@6; left p=null@7"),
	}
}

func windowed(id, op, numbers, steps string) Scenario {
	name, emit, _ := strings.Cut(op, " ")
	return Scenario{ID: "reports." + id, In: parse(steps), Ops: []Op{
		{ID: "in.s", Op: "stream", From: []string{"in"}}, {ID: "g", Op: "groupbykey", From: []string{"in.s"}},
		{ID: "agg", Op: name, From: []string{"g"}, Emit: emit, N: parseNumbers(numbers)},
		{ID: "changes", Op: "changes", From: []string{"agg"}}, {ID: "out", Op: "to", From: []string{"changes"}},
	}}
}

func joined(id, op, numbers, steps string) Scenario {
	return Scenario{ID: "reports." + id, In: parse(steps), Ops: []Op{
		{ID: "left.s", Op: "stream", From: []string{"left"}}, {ID: "right.s", Op: "stream", From: []string{"right"}},
		{ID: "j", Op: op, From: []string{"left.s", "right.s"}, N: parseNumbers(numbers)}, {ID: "out", Op: "to", From: []string{"j"}},
	}}
}

func foreignKeyed(id, op, steps string) Scenario {
	return Scenario{ID: "reports." + id, In: parse(steps), Ops: []Op{
		{ID: "left.t", Op: "table", From: []string{"left"}}, {ID: "right.t", Op: "table", From: []string{"right"}},
		{ID: "j", Op: op, From: []string{"left.t", "right.t"}, Key: "foreign", Store: true},
		{ID: "changes", Op: "changes", From: []string{"j"}}, {ID: "out", Op: "to", From: []string{"changes"}},
	}}
}

// parse reads steps as "topic key=value@time; @milliseconds"; null is a null value.
func parse(text string) (steps []Step) {
	for part := range strings.SplitSeq(text, "; ") {
		s := Step{Topic: Clock}
		front, at, _ := strings.Cut(part, "@")
		if front != "" {
			topic, record, _ := strings.Cut(front, " ")
			key, value, _ := strings.Cut(record, "=")
			s = Step{Topic: topic, Key: &key, Value: &value}
			if value == "null" {
				s.Value = nil
			}
		}
		s.Time = integer(at)
		steps = append(steps, s)
	}
	return steps
}

func parseNumbers(text string) map[string]int64 {
	numbers := map[string]int64{}
	for part := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(part, "=")
		numbers[name] = integer(value)
	}
	return numbers
}

func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("scenario: %v", err))
	}
	return n
}
