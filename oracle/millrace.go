package oracle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-streams/millrace/oracle/scenario"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/testdriver"
	"github.com/millrace-streams/millrace/topology"
)

// Text decodes a record's key or a record's value, for people; nil is null.
type Text func(key, value []byte) (k, v *string, err error)

// output reads an output topic.
type output struct {
	topic string
	open  func(*testdriver.Driver) func() []scenario.Row
	text  Text
}

func outputOf[K, V any](t topology.Topic[K, V], key func(K) string, value func(V) string) output {
	open := func(d *testdriver.Driver) func() []scenario.Row {
		out := testdriver.Output(d, t)
		return func() (rows []scenario.Row) {
			for _, r := range out.ReadAll() {
				row := scenario.Row{Topic: t.Name(), Time: r.Timestamp, Origin: origin(r.Headers)}
				if !r.NullKey {
					row.Key = new(key(r.Key))
				}
				if !r.NullValue {
					row.Value = new(value(r.Value))
				}
				rows = append(rows, row)
			}
			return rows
		}
	}
	return output{t.Name(), open, textOf(t.KeySerde(), key, t.ValueSerde(), value)}
}

func textOf[K, V any](keys serde.Serde[K], key func(K) string, values serde.Serde[V], value func(V) string) Text {
	return func(rawKey, rawValue []byte) (k, v *string, err error) {
		if k, err = decoded(keys, key, rawKey); err == nil {
			v, err = decoded(values, value, rawValue)
		}
		return k, v, err
	}
}

func decoded[T any](s serde.Serde[T], show func(T) string, raw []byte) (*string, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := s.Decode(raw)
	if err != nil {
		return nil, err
	}
	return new(show(v)), nil
}

// origin returns the values of headers.
func origin(headers []processor.Header) string {
	var values []string
	for _, h := range headers {
		values = append(values, string(h.Value))
	}
	return strings.Join(values, ",")
}

// Millrace runs a scenario on the test driver: the loop of the application. After each step, all that it caused is processed and
// committed. before, if not nil, is called before each step with its index. An error is a topology that cannot be built.
func Millrace(s scenario.Scenario, before func(*testdriver.Driver, int), opts ...testdriver.Option) (a scenario.Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("oracle: %s: panic: %v", s.ID, v)
		}
	}()
	g, top, err := build(s, nil)
	if err != nil {
		return a, err
	}
	d, err := testdriver.Open(top, opts...)
	if err != nil {
		return a, err
	}
	defer d.Close()
	a.ID = s.ID
	feed, drain := senders(g, d), drains(g, d)
	for i, step := range s.In {
		if before != nil {
			before(d, i)
		}
		if step.Topic == scenario.Clock {
			d.Advance(time.Duration(step.Time) * time.Millisecond)
		} else if send := feed[step.Topic]; send != nil {
			send(i, step)
		}
		a.Out = append(a.Out, drain(i)...)
		if err := d.Err(); err != nil {
			a.Error = err.Error()
			return a, nil
		}
	}
	a.Dropped = int64(len(d.Dropped()) + len(d.Late()))
	a.Stores, err = g.contents(s, d)
	return a, err
}

func senders(g *graph, d *testdriver.Driver) map[string]func(int, scenario.Step) {
	feed := map[string]func(int, scenario.Step){}
	for _, t := range g.inputs {
		in := testdriver.Input(d, t)
		feed[t.Name()] = func(i int, s scenario.Step) {
			r := processor.Record[string, []byte]{NullKey: s.Key == nil, NullValue: s.Value == nil, Timestamp: s.Time}
			r.Headers = []processor.Header{{Key: "step", Value: []byte(strconv.Itoa(i))}}
			if s.Key != nil {
				r.Key = *s.Key
			}
			if s.Value != nil {
				r.Value = []byte(*s.Value)
			}
			in.SendAll(r)
		}
	}
	return feed
}

// drains reads all outputs, topic by topic, as the Java program does.
func drains(g *graph, d *testdriver.Driver) func(step int) []scenario.Row {
	var reads []func() []scenario.Row
	for _, o := range g.outputs {
		reads = append(reads, o.open(d))
	}
	return func(step int) (rows []scenario.Row) {
		for _, read := range reads {
			rows = append(rows, read()...)
		}
		for i := range rows {
			rows[i].Step = step
		}
		return rows
	}
}
