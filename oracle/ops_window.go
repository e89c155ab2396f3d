package oracle

import (
	"fmt"
	"time"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/store"
	"github.com/millrace-streams/millrace/topology"
)

// Tables of windows.
type (
	windowed     = store.Windowed[string]
	windowTable  = topology.KTable[windowed, []byte]
	windowCounts = topology.KTable[windowed, int64]
)

func init() {
	register(map[string]func(*graph, scenario.Op){
		"session.count": func(g *graph, op scenario.Op) {
			g.put(op, topology.CountSessions(sessions(g, op), sessionStore(g, op, serde.Int64, number), emission(op)...))
		},
		"session.reduce": func(g *graph, op scenario.Op) {
			g.put(op, topology.ReduceSessions(sessions(g, op), reducing(op.Fn), sessionStore(g, op, serde.Bytes, text), emission(op)...))
		},
		"session.aggregate": func(g *graph, op scenario.Op) {
			g.put(op, topology.AggregateSessions(sessions(g, op), initial, adding(op.Fn), merging, sessionStore(g, op, serde.Bytes, text), emission(op)...))
		},
		"suppress":  buildSuppress,
		"tsuppress": buildSuppress,
	})
	for _, window := range []string{"tumbling", "hopping", "sliding"} {
		register(map[string]func(*graph, scenario.Op){
			window + ".count": func(g *graph, op scenario.Op) {
				g.put(op, topology.CountWindows(windows(g, op), windowStore(g, op, serde.Int64, number), emission(op)...))
			},
			window + ".reduce": func(g *graph, op scenario.Op) {
				g.put(op, topology.ReduceWindows(windows(g, op), reducing(op.Fn), windowStore(g, op, serde.Bytes, text), emission(op)...))
			},
			window + ".aggregate": func(g *graph, op scenario.Op) {
				g.put(op, topology.AggregateWindows(windows(g, op), initial, adding(op.Fn), windowStore(g, op, serde.Bytes, text), emission(op)...))
			},
		})
	}
}

// ms returns a length of time of the operator.
func ms(op scenario.Op, name string) time.Duration {
	return time.Duration(op.N[name]) * time.Millisecond
}

// windowing returns the windows of the operator and the settings of their store.
func windowing(op scenario.Op) (topology.Windowing, store.WindowOptions) {
	if op.Op[:3] == "sli" {
		w := topology.Sliding(ms(op, "size"), ms(op, "grace"))
		return w, w.Store()
	}
	w := topology.Tumbling(ms(op, "size"))
	if op.Op[:3] == "hop" {
		w = topology.Hopping(ms(op, "size"), ms(op, "advance"))
	}
	w = w.Grace(ms(op, "grace"))
	return w, w.Store()
}

func windows(g *graph, op scenario.Op) topology.WindowedStream[string, []byte] {
	w, _ := windowing(op)
	return topology.WindowedBy(from[grouped](g, op, 0), w)
}

// windowStore declares the store of the operator, and remembers how its windows are encoded as keys of topics.
func windowStore[V any](g *graph, op scenario.Op, values serde.Serde[V], show func(V) string) *store.Window[string, V] {
	_, options := windowing(op)
	if _, given := op.N["retention"]; given {
		options.Retention = ms(op, "retention")
	}
	g.windows[op.ID] = store.TimeWindowed(serde.String, options.Size)
	s := store.NewWindow(op.ID, serde.String, values, options)
	g.tables = append(g.tables, windowsOf(s, show))
	return s
}

func sessionWindows(op scenario.Op) topology.SessionWindows {
	return topology.Session(ms(op, "size"), ms(op, "grace"))
}

func sessions(g *graph, op scenario.Op) topology.SessionStream[string, []byte] {
	return topology.SessionsBy(from[grouped](g, op, 0), sessionWindows(op))
}

func sessionStore[V any](g *graph, op scenario.Op, values serde.Serde[V], show func(V) string) *store.Session[string, V] {
	options := sessionWindows(op).Store()
	if _, given := op.N["retention"]; given {
		options.Retention = ms(op, "retention")
	}
	g.windows[op.ID] = store.SessionWindowed(serde.String)
	s := store.NewSession(op.ID, serde.String, values, options)
	g.tables = append(g.tables, sessionsOf(s, show))
	return s
}

// emission returns the options of an aggregation in windows.
func emission(op scenario.Op) []topology.TableOption {
	opts := []topology.TableOption{name(op)}
	if op.Emit == "close" {
		opts = append(opts, topology.EmitOnClose())
	}
	return opts
}

func showWindow(w windowed) string { return fmt.Sprintf("%s@%d-%d", w.Key, w.Start, w.End) }

func buildSuppress(g *graph, op scenario.Op) {
	keys := g.windows[op.From[0]]
	g.windows[op.ID] = keys
	switch t := g.handles[op.From[0]].(type) {
	case table:
		g.put(op, topology.Suppress(t, forTime(op, serde.String, serde.Bytes), name(op)))
	case counts:
		g.put(op, topology.Suppress(t, forTime(op, serde.String, serde.Int64), name(op)))
	case windowTable:
		g.put(op, topology.Suppress(t, suppression(op, keys, serde.Bytes), name(op)))
	case windowCounts:
		g.put(op, topology.Suppress(t, suppression(op, keys, serde.Int64), name(op)))
	default:
		from[table](g, op, 0)
	}
}

func suppression[V any](op scenario.Op, keys serde.Serde[windowed], values serde.Serde[V]) topology.Suppression[windowed, V] {
	if op.Until == "close" {
		return topology.UntilWindowCloses(topology.NewBuffer(op.ID, keys, values, topology.BufferOptions{MaxRecords: op.N["records"]}))
	}
	return forTime(op, keys, values)
}

func forTime[K, V any](op scenario.Op, keys serde.Serde[K], values serde.Serde[V]) topology.Suppression[K, V] {
	bounds := topology.BufferOptions{MaxRecords: op.N["records"], EmitEarly: true}
	return topology.UntilTimeLimit(ms(op, "limit"), topology.NewBuffer(op.ID, keys, values, bounds))
}
