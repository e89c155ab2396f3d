package scenario_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

func TestSameSeedSameScenario(t *testing.T) {
	for _, kind := range scenario.Kinds() {
		a, b := scenario.Generate(kind, 7), scenario.Generate(kind, 7)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s differs:\n%v\n%v", kind, a, b)
		}
		if reflect.DeepEqual(a.In, scenario.Generate(kind, 8).In) {
			t.Errorf("%s: the seed does not matter", kind)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, kind := range scenario.Kinds() {
		s := scenario.Generate(kind, 3)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back scenario.Scenario
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(s, back) {
			t.Errorf("%v\nbecame\n%v", s, back)
		}
	}
}

// TestShrink has a scenario fail as long as it holds two certain records.
func TestShrink(t *testing.T) {
	s := scenario.Generate("stateless.map", 1)
	first, last := s.In[1], s.In[len(s.In)-1]
	holds := func(s scenario.Scenario, step scenario.Step) bool {
		for _, other := range s.In {
			if reflect.DeepEqual(step, other) {
				return true
			}
		}
		return false
	}
	small := scenario.Shrink(s, func(s scenario.Scenario) bool { return holds(s, first) && holds(s, last) })
	if len(small.In) != 2 {
		t.Errorf("%d steps are left:\n%v", len(small.In), small)
	}
}
