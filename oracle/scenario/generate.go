package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Kinds returns the names of all kinds of scenarios, in a fixed order. What is before the first dot of a name is the family.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Family returns the family of a kind or of a scenario's ID.
func Family(name string) string {
	family, _, _ := strings.Cut(name, ".")
	return family
}

// Generate makes the scenario of a kind and a seed; the same ones make the same scenario.
func Generate(name string, seed uint64) Scenario {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		panic("scenario: there is no kind " + name)
	}
	d := &draw{Rand: rand.New(rand.NewPCG(seed, uint64(i))), last: map[string]string{}}
	d.s.ID = fmt.Sprintf("%s/%d", name, seed)
	kinds[i].build(d)
	d.steps()
	return d.s
}

// kind is a kind of scenario: build adds operators and says what the topics carry.
type kind struct {
	name  string
	build func(*draw)
}

// draw makes one scenario.
type draw struct {
	*rand.Rand
	s      Scenario
	topics []content
	marks  []int64           // lengths of time at which something happens
	last   map[string]string // by topic and key, the last value
	now    int64
	latest int64
}

// content is what a topic carries.
type content struct {
	topic string
	keys  []string
	nulls int // null values, percent
}

var (
	someKeys    = []string{"k", "q", "r"}
	foreignKeys = []string{"a", "b", "c"} // the first characters of values
)

// chance is true in percent of all cases.
func (d *draw) chance(percent int) bool { return d.IntN(100) < percent }

func oneOf[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

// op adds an operator and returns it for further settings. It stays valid until the next is added.
func (d *draw) op(id, op string, from ...string) *Op {
	d.s.Ops = append(d.s.Ops, Op{ID: id, Op: op, From: from})
	return &d.s.Ops[len(d.s.Ops)-1]
}

// num sets a number.
func (o *Op) num(name string, value int64) *Op {
	if o.N == nil {
		o.N = map[string]int64{}
	}
	o.N[name] = value
	return o
}

// time sets a length of time, around which the timestamps of records are then drawn.
func (d *draw) time(o *Op, name string, among ...int64) int64 {
	value := oneOf(d, among...)
	o.num(name, value)
	d.marks = append(d.marks, value)
	return value
}

// stream, table and global add a source of a topic of the same name.
func (d *draw) stream(topic string) string {
	d.carries(topic, someKeys, 8)
	d.op(topic+".s", "stream", topic)
	return topic + ".s"
}

func (d *draw) table(topic string, keys []string) string {
	d.carries(topic, keys, 18)
	d.op(topic+".t", "table", topic)
	return topic + ".t"
}

func (d *draw) carries(topic string, keys []string, nulls int) {
	d.topics = append(d.topics, content{topic, keys, nulls})
}

// out writes a stream to the topic "out".
func (d *draw) out(stream string) { d.op("out", "to", stream) }

// outTable writes a table's changes to the topic "out".
func (d *draw) outTable(table string) {
	d.op("changes", "changes", table)
	d.out("changes")
}

// steps draws the records and clock steps.
func (d *draw) steps() {
	if d.chance(50) {
		d.now = d.Int64N(200)
		d.latest = d.now
	}
	for range 4 + d.IntN(26) {
		if d.chance(3) {
			d.s.In = append(d.s.In, Step{Topic: Clock, Time: 1 + d.Int64N(50)})
			continue
		}
		c := oneOf(d, d.topics...)
		d.now = max(0, d.timestamp())
		d.latest = max(d.latest, d.now)
		key := d.key(c)
		d.s.In = append(d.s.In, Step{Topic: c.topic, Key: key, Value: d.value(c, key), Time: d.now})
	}
}

func (d *draw) key(c content) *string {
	switch n := d.IntN(100); {
	case n < 4:
		return nil
	case n < 6:
		return new("")
	default:
		return new(oneOf(d, c.keys...))
	}
}

// value draws one whose first character is a foreign key or a minus sign, and whose last is a digit. Now and then it is the
// one that the key has had before.
func (d *draw) value(c content, key *string) *string {
	if d.chance(c.nulls) {
		return nil
	}
	if d.chance(2) {
		return new("")
	}
	at := c.topic
	if key != nil {
		at += "/" + *key
	}
	if before, ok := d.last[at]; ok && d.chance(12) {
		return &before
	}
	v := oneOf(d, "a", "a", "b", "b", "c", "-") + fmt.Sprint(d.IntN(10))
	d.last[at] = v
	return &v
}

// timestamp draws the next time: mostly in order or nearly, often at a length of time of an operator from the latest or at a
// multiple of it, one more or one less, at times far ahead or anywhere in the past.
func (d *draw) timestamp() int64 {
	mark, edge := int64(5), d.Int64N(3)-1
	if len(d.marks) > 0 {
		mark = oneOf(d, d.marks...)
		if d.chance(30) {
			mark += oneOf(d, d.marks...)
		}
	}
	switch n := d.IntN(100); {
	case n < 12:
		return d.now
	case n < 45:
		return d.latest + d.Int64N(4)
	case n < 60:
		return d.latest + mark + edge
	case n < 78:
		return d.latest - mark + edge
	case n < 88 && mark > 0:
		return (d.latest/mark+d.Int64N(3)-1)*mark + edge
	case n < 91:
		return d.latest + 3*mark + 10
	case n < 92 && d.chance(40):
		return oneOf(d, d.latest+1_000_000, 4_000_000_000_000) // years ahead: all later ones are late
	case n < 97:
		return d.latest - d.Int64N(5)
	default:
		return d.Int64N(d.latest + 1)
	}
}
