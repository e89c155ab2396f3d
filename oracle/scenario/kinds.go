package scenario

// kinds are all kinds of scenarios. A name never changes its meaning lightly: seeds are printed with it.
var kinds = concat(statelessKinds(), aggregateKinds(), tableKinds(), joinKinds(), windowKinds(), streamJoinKinds(), versionedKinds())

func concat(lists ...[]kind) (all []kind) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func statelessKinds() (all []kind) {
	for _, op := range []string{"map", "mapvalues", "flatmap", "flatmapvalues", "filter", "filternot", "selectkey", "through", "split", "merge"} {
		all = append(all, kind{"stateless." + op, func(d *draw) { d.out(d.stateless("x", op, d.stream("in"))) }})
	}
	return append(all, kind{"stateless.chain", func(d *draw) {
		at := d.stream("in")
		for i := range 2 + d.IntN(3) {
			at = d.stateless(string(rune('u'+i)), oneOf(d, "map", "mapvalues", "flatmap", "flatmapvalues", "filter", "filternot", "selectkey", "split", "through"), at)
		}
		d.out(at)
	}})
}

// stateless adds an operator on streams.
func (d *draw) stateless(id, op, from string) string {
	switch op {
	case "split":
		d.op(id, op, from).Branches = oneOf(d, []string{"even"}, []string{"letter", "even"}, []string{"full", "odd"})
		d.op(id+"m", "merge", id+"."+d.s.Ops[len(d.s.Ops)-1].Branches[0], id+".rest")
		return id + "m"
	case "merge":
		d.op(id, op, from, d.stream("in2"))
		return id
	}
	o := d.op(id, op, from)
	switch op {
	case "map":
		o.Fn, o.Key = oneOf(d, "bang", "first", "const"), oneOf(d, "same", "first", "both")
	case "mapvalues":
		o.Fn = oneOf(d, "bang", "first", "const")
	case "flatmap", "selectkey":
		o.Key = oneOf(d, "same", "first", "both")
	case "filter", "filternot":
		o.Fn = oneOf(d, "even", "odd", "full", "letter")
	}
	return id
}

func aggregateKinds() (all []kind) {
	for _, op := range []string{"count", "reduce", "aggregate"} {
		all = append(all, kind{"aggregate." + op, func(d *draw) {
			d.aggregate("agg", op, d.grouped("g", "in"))
			d.outTable("agg")
		}})
	}
	return append(all, kind{"aggregate.cogroup", func(d *draw) {
		groups := []string{d.grouped("g", "in"), d.grouped("h", "in2")}
		if d.chance(30) {
			groups = append(groups, d.grouped("i", "in3"))
		}
		d.aggregate("agg", "cogroup", groups...)
		d.outTable("agg")
	}})
}

// grouped adds a topic, grouped by its key or by another.
func (d *draw) grouped(id, topic string) string {
	in := d.stream(topic)
	if d.chance(60) {
		d.op(id, "groupbykey", in)
	} else {
		d.op(id, "groupby", in).Key = oneOf(d, "same", "first", "both", "const")
	}
	return id
}

// aggregate adds an aggregation of any kind, and returns it for further settings.
func (d *draw) aggregate(id, op string, from ...string) *Op {
	o := d.op(id, op, from...)
	switch op {
	case "reduce", "treduce", "tumbling.reduce", "hopping.reduce", "sliding.reduce", "session.reduce":
		o.Fn = oneOf(d, "concat", "concat", "last", "max")
	case "aggregate", "taggregate", "cogroup":
		o.Fn = oneOf(d, "", "", "forget")
	}
	return o
}

func tableKinds() (all []kind) {
	all = append(all, kind{"table.source", func(d *draw) { d.outTable(d.table("in", someKeys)) }})
	for _, op := range []string{"tfilter", "tfilternot", "tmapvalues", "ttransform"} {
		all = append(all, kind{"table." + op, func(d *draw) { d.outTable(d.derive("x", op, d.table("in", someKeys))) }})
	}
	for _, op := range []string{"tcount", "treduce", "taggregate"} {
		all = append(all, kind{"table." + op, func(d *draw) {
			d.op("g", "tgroupby", d.maybeDerived(d.table("in", someKeys))).Key = oneOf(d, "same", "first", "both", "const")
			d.aggregate("agg", op, "g")
			d.outTable("agg")
		}})
	}
	return append(all,
		kind{"table.totable", func(d *draw) { d.op("x", "totable", d.stream("in")); d.outTable(d.maybeDerived("x")) }},
		kind{"table.chain", func(d *draw) {
			at := d.table("in", someKeys)
			for i := range 2 + d.IntN(3) {
				at = d.derive(string(rune('u'+i)), oneOf(d, "tfilter", "tfilternot", "tmapvalues", "ttransform"), at)
			}
			d.outTable(at)
		}},
		kind{"table.ofaggregate", func(d *draw) {
			d.aggregate("agg", oneOf(d, "reduce", "aggregate"), d.grouped("g", "in"))
			d.outTable(d.derive("x", oneOf(d, "tfilter", "tmapvalues"), "agg"))
		}},
	)
}

// derive adds an operator that makes a table of each row of a table.
func (d *draw) derive(id, op, from string) string {
	o := d.op(id, op, from)
	o.Store = d.chance(40)
	switch op {
	case "tfilter", "tfilternot":
		o.Fn = oneOf(d, "even", "odd", "full", "letter")
	default:
		o.Fn = oneOf(d, "bang", "first", "const", "some")
	}
	return id
}

// maybeDerived puts an operator behind a table now and then.
func (d *draw) maybeDerived(table string) string {
	if d.chance(65) {
		return table
	}
	return d.derive(table+".d", oneOf(d, "tfilter", "tmapvalues", "tfilternot", "ttransform"), table)
}

func joinKinds() (all []kind) {
	for _, op := range []string{"streamtablejoin", "streamtableleft"} {
		all = append(all, kind{"join." + op, func(d *draw) {
			d.op("j", op, d.stream("left"), d.maybeDerived(d.table("right", someKeys)))
			d.out("j")
		}})
	}
	for _, op := range []string{"streamglobaljoin", "streamgloballeft"} {
		all = append(all, kind{"join." + op, func(d *draw) {
			left := d.stream("left")
			d.carries("right", foreignKeys, 18)
			d.op("right.t", "globaltable", "right")
			d.op("j", op, left, "right.t").Key = oneOf(d, "first", "foreign")
			d.out("j")
		}})
	}
	for _, op := range []string{"tablejoin", "tableleft", "tableouter"} {
		all = append(all, kind{"join." + op, func(d *draw) { d.joinTables(op) }})
	}
	for _, op := range []string{"foreignjoin", "foreignleft"} {
		all = append(all, kind{"foreign." + op, func(d *draw) {
			left, right := d.maybeDerived(d.table("left", someKeys)), d.maybeDerived(d.table("right", foreignKeys))
			o := d.op("j", op, left, right)
			o.Key, o.Store, o.Fn = "foreign", d.chance(50), oneOf(d, "", "", "some")
			d.outTable(d.maybeDerived("j"))
		}})
	}
	return all
}

// joinTables joins two tables, or three, or one with what is derived from it, and now and then groups the result.
func (d *draw) joinTables(op string) {
	left := d.maybeDerived(d.table("left", someKeys))
	right := d.maybeDerived(d.table("right", someKeys))
	o := d.op("j", op, left, right)
	o.Store, o.Fn = d.chance(50), oneOf(d, "", "", "some")
	at := "j"
	if d.chance(20) {
		d.op("j2", oneOf(d, "tablejoin", "tableleft", "tableouter"), at, oneOf(d, left, right)).Store = d.chance(50)
		at = "j2"
	}
	if d.chance(20) {
		d.op("g", "tgroupby", at).Key = oneOf(d, "first", "const")
		d.aggregate("agg", "taggregate", "g")
		at = "agg"
	}
	d.outTable(d.maybeDerived(at))
}
