package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/store"
)

// contents reads a store of a scenario by queries.
type contents struct {
	op   string // whose store it is
	name string
	read func(scenario.Scenario, store.QuerySource) ([]scenario.Row, error)
}

// contents returns what is in the stores of a scenario's operators, by their names.
func (g *graph) contents(s scenario.Scenario, from store.QuerySource) (map[string][]scenario.Row, error) {
	all := map[string][]scenario.Row{}
	for _, c := range g.tables {
		if !slices.ContainsFunc(s.Ops, func(op scenario.Op) bool { return op.ID == c.op }) {
			continue
		}
		rows, err := c.read(s, from)
		if err != nil {
			return nil, err
		}
		all[c.name] = rows
	}
	return all, nil
}

// rowsOf are the rows of a key-value store.
func rowsOf[V any](s *store.KeyValue[string, V], show func(V) string) contents {
	return contents{s.Name(), s.Name(), func(_ scenario.Scenario, from store.QuerySource) (rows []scenario.Row, err error) {
		q := s.Query(from)
		err = q.All(func(k string, v V) bool {
			rows = append(rows, scenario.Row{Key: &k, Value: new(show(v))})
			return true
		})
		for i := range rows {
			if err == nil {
				_, rows[i].Time, _, err = q.GetWithTime(*rows[i].Key)
			}
		}
		return rows, err
	}}
}

// windowsOf are the rows of a window store.
func windowsOf[V any](s *store.Window[string, V], show func(V) string) contents {
	return contents{s.Name(), s.Name(), func(_ scenario.Scenario, from store.QuerySource) (rows []scenario.Row, err error) {
		err = s.Query(from).All(func(r store.Row[string, V]) bool {
			rows = append(rows, scenario.Row{Key: new(showWindow(r.Windowed)), Value: new(show(r.Value)), Time: r.Timestamp})
			return true
		})
		return rows, err
	}}
}

// joinedOf are the records that one side of a join of streams keeps, without those that are too old to be joined: records
// without a value count there, as in Kafka Streams' stores in memory. Their times are the starts of their windows.
func joinedOf(s *store.Window[string, []byte], op scenario.Op, side int) contents {
	return contents{op.ID, s.Name(), func(sc scenario.Scenario, from store.QuerySource) (rows []scenario.Row, err error) {
		oldest := int64(0)
		for _, step := range sc.In {
			if step.Topic+".s" == op.From[side] && step.Key != nil {
				oldest = max(oldest, step.Time-s.Retention().Milliseconds()+1)
			}
		}
		err = s.Query(from).All(func(r store.Row[string, []byte]) bool {
			if r.Start >= oldest {
				rows = append(rows, scenario.Row{Key: new(fmt.Sprintf("%s@%d", r.Key, r.Start)), Value: new(text(r.Value))})
			}
			return true
		})
		return rows, err
	}}
}

// sessionsOf are the rows of a session store, with the times of their ends: Kafka Streams knows no others.
func sessionsOf[V any](s *store.Session[string, V], show func(V) string) contents {
	return contents{s.Name(), s.Name(), func(_ scenario.Scenario, from store.QuerySource) (rows []scenario.Row, err error) {
		err = s.Query(from).All(func(r store.Row[string, V]) bool {
			rows = append(rows, scenario.Row{Key: new(showWindow(r.Windowed)), Value: new(show(r.Value)), Time: r.End})
			return true
		})
		return rows, err
	}}
}

// versionsOf are the versions that a versioned store finds for each key and time of a scenario, and the latest ones.
func versionsOf[V any](s *store.Versioned[string, V], show func(V) string) contents {
	return contents{s.Name(), s.Name(), func(sc scenario.Scenario, from store.QuerySource) (rows []scenario.Row, err error) {
		q := s.Query(from)
		add := func(key string, v store.Version[V], found bool) {
			if found {
				rows = append(rows, scenario.Row{Key: &key, Value: new(show(v.Value)), Time: v.From})
			}
		}
		for _, k := range keysOf(sc) {
			v, found, err := q.Get(k)
			if err != nil {
				return nil, err
			}
			add(k, v, found)
			for _, at := range timesOf(sc) {
				if v, found, err = q.GetAsOf(k, at); err != nil {
					return nil, err
				}
				add(fmt.Sprintf("%s@%d", k, at), v, found)
			}
		}
		return rows, nil
	}}
}

// keysOf and timesOf return the keys and timestamps of a scenario's records.
func keysOf(s scenario.Scenario) (keys []string) {
	for _, step := range s.In {
		if step.Key != nil {
			keys = append(keys, *step.Key)
		}
	}
	return unique(keys)
}

func timesOf(s scenario.Scenario) (times []int64) {
	for _, step := range s.In {
		if step.Topic != scenario.Clock {
			times = append(times, step.Time)
		}
	}
	return unique(times)
}

func unique[T cmp.Ordered](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}
