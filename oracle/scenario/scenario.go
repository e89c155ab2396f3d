package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Clock is the topic of a step that advances the wall clock.
const Clock = "@"

// Scenario is a topology and what is fed to it.
type Scenario struct {
	ID   string   `json:"id"`             // kind and seed
	Diff []string `json:"diff,omitempty"` // the differences that Kafka Streams' topology imitates, by their names
	Ops  []Op     `json:"ops"`            // each after those that it reads
	In   []Step   `json:"in,omitempty"`
}

// Op is an operator. Which of the fields it needs depends on Op.
type Op struct {
	ID       string           `json:"id"`                 // its handle; also the name of its store, repartition or output topic
	Op       string           `json:"op"`                 // what it does
	From     []string         `json:"from"`               // handles that it reads; of a source the topic
	Fn       string           `json:"fn,omitempty"`       // a function of functions.go and Functions.java
	Key      string           `json:"key,omitempty"`      // a key function
	Branches []string         `json:"branches,omitempty"` // conditions of a split
	Emit     string           `json:"emit,omitempty"`     // of a window: "close", else on every update
	Until    string           `json:"until,omitempty"`    // of a suppression: "close" or "time"
	Store    bool             `json:"store,omitempty"`    // with a store where it is optional
	N        map[string]int64 `json:"n,omitempty"`        // numbers; times are in milliseconds
}

// Step is a record, or an advance of the wall clock by Time milliseconds when Topic is Clock.
type Step struct {
	Topic      string
	Key, Value *string // nil is null
	Time       int64   // of a record its timestamp
}

// MarshalJSON writes [topic, key, value, time] or ["@", milliseconds].
func (s Step) MarshalJSON() ([]byte, error) {
	if s.Topic == Clock {
		return json.Marshal([]any{Clock, s.Time})
	}
	return json.Marshal([]any{s.Topic, s.Key, s.Value, s.Time})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Step) UnmarshalJSON(data []byte) error {
	*s = Step{}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) == 2 {
		return each(parts, &s.Topic, &s.Time)
	}
	return each(parts, &s.Topic, &s.Key, &s.Value, &s.Time)
}

// Answer is what a topology made of a scenario.
type Answer struct {
	ID      string           `json:"id,omitempty"`
	Out     []Row            `json:"out"`              // in the order of steps, then of output topics, then as written
	Dropped int64            `json:"dropped"`          // records that were skipped: late, without a key and the like
	Stores  map[string][]Row `json:"stores,omitempty"` // final contents
	Error   string           `json:"error,omitempty"`  // what was thrown
}

// Row is a record that was written after the step of that index, or a row of a store, whose Step and Topic are empty.
type Row struct {
	Step       int
	Topic      string
	Key, Value *string
	Time       int64
	// Origin is the value of the header "step", which each record that is fed has: the index of its step. Several are
	// separated by commas.
	Origin string
}

// MarshalJSON writes [step, topic, key, value, time, origin] without an origin that is the step, for a store's row
// [key, value, time].
func (r Row) MarshalJSON() ([]byte, error) {
	switch {
	case r.Topic == "":
		return json.Marshal([]any{r.Key, r.Value, r.Time})
	case r.Origin == strconv.Itoa(r.Step):
		return json.Marshal([]any{r.Step, r.Topic, r.Key, r.Value, r.Time})
	}
	return json.Marshal([]any{r.Step, r.Topic, r.Key, r.Value, r.Time, r.Origin})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Row) UnmarshalJSON(data []byte) error {
	*r = Row{}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	switch len(parts) {
	case 3:
		return each(parts, &r.Key, &r.Value, &r.Time)
	case 6:
		return each(parts, &r.Step, &r.Topic, &r.Key, &r.Value, &r.Time, &r.Origin)
	}
	err := each(parts, &r.Step, &r.Topic, &r.Key, &r.Value, &r.Time)
	r.Origin = strconv.Itoa(r.Step)
	return err
}

func each(parts []json.RawMessage, into ...any) error {
	if len(parts) != len(into) {
		return fmt.Errorf("scenario: %d elements, not %d", len(parts), len(into))
	}
	for i, p := range parts {
		if err := json.Unmarshal(p, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// Outputs returns the names of the output topics in the order of their declaration.
func (s Scenario) Outputs() (names []string) {
	for _, op := range s.Ops {
		if op.Op == "to" {
			names = append(names, op.ID)
		}
	}
	return names
}

// Uses reports whether any operator is one of these.
func (s Scenario) Uses(ops ...string) bool {
	return slices.ContainsFunc(s.Ops, func(op Op) bool { return slices.Contains(ops, op.Op) })
}
