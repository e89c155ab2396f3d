package scenario

// Kinds whose outcome depends on time.

func windowKinds() (all []kind) {
	for _, window := range []string{"tumbling", "hopping", "sliding", "session"} {
		for _, op := range []string{"count", "reduce", "aggregate"} {
			name := "window." + window + "." + op
			all = append(all,
				kind{name, func(d *draw) { d.outTable(d.window(window, op, "")) }},
				kind{name + ".close", func(d *draw) { d.outTable(d.window(window, op, "close")) }})
		}
		all = append(all,
			kind{"window." + window + ".cogroup", func(d *draw) { d.outTable(d.window(window, "cogroup", "")) }},
			kind{"suppress." + window + ".close", func(d *draw) {
				d.op("sup", "suppress", d.window(window, oneOf(d, "count", "reduce", "aggregate"), "")).Until = "close"
				d.outTable("sup")
			}},
			kind{"suppress." + window + ".time", func(d *draw) {
				d.suppressForTime("suppress", d.window(window, oneOf(d, "count", "reduce"), ""))
				d.outTable("sup")
			}})
	}
	all = append(all, kind{"window.regrouped", func(d *draw) {
		at := d.window(oneOf(d, "tumbling", "hopping", "sliding", "session"), oneOf(d, "count", "reduce", "aggregate"), "")
		if d.chance(40) {
			d.op("sup", "suppress", at).Until = "close"
			at = "sup"
		}
		d.op("g2", "tgroupby", at).Key = oneOf(d, "same", "first", "const")
		d.aggregate("agg2", oneOf(d, "tcount", "treduce", "taggregate"), "g2")
		d.outTable("agg2")
	}})
	return append(all, kind{"suppress.table.time", func(d *draw) {
		d.suppressForTime("tsuppress", d.maybeDerived(d.table("in", someKeys)))
		d.outTable("sup")
	}}, kind{"suppress.aggregate.time", func(d *draw) {
		d.aggregate("agg", oneOf(d, "count", "reduce"), d.grouped("g", "in"))
		d.suppressForTime("tsuppress", "agg")
		d.outTable("sup")
	}})
}

// window adds an aggregation in windows.
func (d *draw) window(window, op, emit string) string {
	from := []string{d.grouped("g", "in")}
	if op == "cogroup" {
		from = append(from, d.grouped("h", "in2"))
	}
	o := d.aggregate("agg", window+"."+op, from...)
	o.Emit = emit
	size := d.time(o, "size", 1, 2, 5, 10, 10, 50)
	if window == "hopping" {
		d.time(o, "advance", 1, max(1, size/3), max(1, size/2), size)
	}
	if window == "session" && d.chance(10) {
		size = 0
		o.num("size", 0)
	}
	grace := d.time(o, "grace", 0, 0, 1, 3, 10, 60)
	if d.chance(15) {
		least := size + grace
		switch window {
		case "sliding":
			least += size
			if emit == "close" { // Kafka Streams then keeps all rows: so that as much is kept as is needed
				least += size + 1
			}
		case "session":
			least++
		}
		o.num("retention", max(least, 1)+oneOf[int64](d, 0, 1, 40))
	}
	return "agg"
}

func (d *draw) suppressForTime(op, from string) {
	o := d.op("sup", op, from)
	o.Until = "time"
	d.time(o, "limit", 0, 1, 5, 10, 50)
	if d.chance(50) {
		o.num("records", 1+d.Int64N(4))
	}
}

func streamJoinKinds() (all []kind) {
	for _, op := range []string{"streamjoin", "streamleft", "streamouter"} {
		all = append(all,
			kind{"streamjoin." + op, func(d *draw) { d.joinStreams(op, true) }},
			kind{"streamjoin." + op + ".asymmetric", func(d *draw) { d.joinStreams(op, false) }})
	}
	return all
}

func (d *draw) joinStreams(op string, symmetric bool) {
	left, right := d.stream("left"), d.stream("right")
	if d.chance(10) {
		right = left
	}
	o := d.op("j", op, left, right)
	before := d.time(o, "before", 0, 1, 5, 10, 30)
	if symmetric {
		o.num("after", before)
	} else {
		d.time(o, "after", 0, 1, 5, 10, 30)
	}
	d.time(o, "grace", 0, 0, 1, 3, 10)
	d.out("j")
}

func versionedKinds() (all []kind) {
	for _, op := range []string{"streamtablejoin", "streamtableleft"} {
		all = append(all,
			kind{"versioned." + op, func(d *draw) {
				d.op("j", op, d.stream("left"), d.versioned("right"))
				d.out("j")
			}},
			kind{"versioned." + op + ".grace", func(d *draw) {
				left, right := d.stream("left"), d.versioned("right")
				history := d.s.Ops[len(d.s.Ops)-1].N["history"]
				d.time(d.op("j", op, left, right), "grace", 0, history/2, history)
				d.out("j")
			}})
	}
	for _, op := range []string{"tablejoin", "tableleft", "tableouter"} {
		all = append(all, kind{"versioned." + op, func(d *draw) {
			d.op("j", op, d.versioned("left"), d.versioned("right")).Store = d.chance(50)
			d.outTable("j")
		}})
	}
	for _, op := range []string{"foreignjoin", "foreignleft"} {
		all = append(all, kind{"versioned." + op, func(d *draw) {
			left := d.versioned("left")
			d.carries("right", foreignKeys, 18)
			d.time(d.op("right.t", "table", "right"), "history", 5, 10, 50)
			o := d.op("j", op, left, "right.t")
			o.Key, o.Store = "foreign", d.chance(50)
			d.outTable("j")
		}})
	}
	for _, op := range []string{"tcount", "treduce", "taggregate"} {
		all = append(all, kind{"versioned." + op, func(d *draw) {
			at := d.versioned("in")
			if d.chance(30) {
				at = d.derive("x", oneOf(d, "tfilter", "tmapvalues"), at)
				d.s.Ops[len(d.s.Ops)-1].Store = false
			}
			d.op("g", "tgroupby", at).Key = oneOf(d, "same", "first", "const")
			d.aggregate("agg", op, "g")
			d.outTable("agg")
		}})
	}
	return append(all, kind{"versioned.source", func(d *draw) { d.outTable(d.maybeDerived(d.versioned("in"))) }})
}

// versioned adds a topic as a versioned table.
func (d *draw) versioned(topic string) string {
	d.carries(topic, someKeys, 18)
	d.time(d.op(topic+".t", "table", topic), "history", 0, 1, 5, 10, 50)
	return topic + ".t"
}
