package millrace.oracle;

import static millrace.oracle.Graph.LONG;
import static millrace.oracle.Graph.STRING;

import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Operators that make tables, and operators on them. */
final class Tables {
    private final Graph g;

    Tables(Graph g) {
        this.g = g;
    }

    /** build adds an operator; false if it is none of these. */
    boolean build(Scenario.Op op) {
        switch (op.op) {
            case "table" -> table(op);
            case "totable" -> toTable(op);
            case "changes" -> changes(op);
            case "tfilter", "tfilternot", "tmapvalues", "ttransform" -> rowByRow(op);
            case "count", "reduce", "aggregate" -> aggregate(op);
            case "cogroup" -> cogroup(op);
            case "tgroupby" -> g.put(op.id, in(op).groupBy(
                (k, v) -> KeyValue.pair(Functions.key(op.key, k instanceof Windowed<?> w ? w.key() : k, v), (Object) Functions.text(v)), Grouped.with(op.id, STRING, STRING)));
            case "tcount", "treduce", "taggregate" -> aggregateTable(op);
            case "tablejoin", "tableleft", "tableouter" -> join(op);
            case "foreignjoin", "foreignleft" -> joinForeign(op);
            case "tsuppress" -> g.putTable(op,
                in(op).suppress(Suppressed.untilTimeLimit(op.ms("limit"), Windows.bounds(op)).withName(op.id)),
                g.from(op, 0).keys(), g.from(op, 0).values());
            default -> {
                return false;
            }
        }
        return true;
    }

    private KTable<Object, Object> in(Scenario.Op op) {
        return g.from(op, 0).table();
    }

    private static ValueJoiner<Object, Object, Object> joiner(Scenario.Op op) {
        return (a, b) -> Functions.join(op.fn, a, b);
    }

    private void table(Scenario.Op op) {
        String topic = op.from.get(0);
        g.inputs.put(topic, STRING);
        g.put(op.id, g.builder.table(topic, Consumed.with(STRING, STRING), latest(op)));
    }

    /** latest is the store of a table that is a copy of records: versioned when a history is asked for. */
    private Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> latest(Scenario.Op op) {
        if (!op.has("history")) {
            return g.keyValue(op, STRING, STRING);
        }
        g.stores.put(op.id, new Graph.Stored(op.id, Graph.Kind.VERSIONED));
        return Materialized.<Object, Object>as(Stores.persistentVersionedKeyValueStore(op.id, op.ms("history")))
            .withKeySerde(STRING).withValueSerde(STRING);
    }

    private void toTable(Scenario.Op op) {
        KStream<Object, Object> s = g.from(op, 0).stream();
        g.put(op.id, s.toTable(g.named(op), latest(op)));
    }

    private void changes(Scenario.Op op) {
        Graph.Handle h = g.from(op, 0);
        KStream<Object, Object> s = h.table().toStream(g.named(op));
        g.put(op.id, new Graph.Handle(h.bare() ? g.origin.bare(s) : s, h.keys(), h.values()));
    }

    private void rowByRow(Scenario.Op op) {
        Graph.Handle h = g.from(op, 0);
        Graph.Handle out = new Graph.Handle(null, h.keys(), op.op.startsWith("tfilter") ? h.values() : STRING);
        KTable<Object, Object> t = h.table();
        KTable<Object, Object> made = op.store ? stored(op, t, g.keyValue(op, out.keys(), out.values())) : switch (op.op) {
            case "tfilter" -> t.filter((k, v) -> Functions.keep(op.fn, v), g.named(op));
            case "tfilternot" -> t.filterNot((k, v) -> Functions.keep(op.fn, v), g.named(op));
            case "tmapvalues" -> t.mapValues(v -> Functions.value(op.fn, v), g.named(op));
            default -> t.transformValues(() -> new WithKey(v -> Functions.value(op.fn, v)), g.named(op));
        };
        g.put(op.id, new Graph.Handle(made, out.keys(), out.values()));
    }

    private KTable<Object, Object> stored(
            Scenario.Op op, KTable<Object, Object> t, Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store) {
        return switch (op.op) {
            case "tfilter" -> t.filter((k, v) -> Functions.keep(op.fn, v), g.named(op), store);
            case "tfilternot" -> t.filterNot((k, v) -> Functions.keep(op.fn, v), g.named(op), store);
            case "tmapvalues" -> t.mapValues(v -> Functions.value(op.fn, v), g.named(op), store);
            default -> t.transformValues(() -> new WithKey(v -> Functions.value(op.fn, v)), store, g.named(op));
        };
    }

    /** WithKey shows the key and the value. */
    private record WithKey(Function<Object, Object> fn) implements ValueTransformerWithKey<Object, Object, Object> {
        @Override
        public void init(ProcessorContext context) {}

        @Override
        public Object transform(Object k, Object v) {
            return v == null ? null : Functions.text(k) + ":" + Functions.text(fn.apply(v));
        }

        @Override
        public void close() {}
    }

    private void aggregate(Scenario.Op op) {
        KGroupedStream<Object, Object> grouped = g.grouped(op, 0, Graph.Nulls.IGNORED);
        if (op.op.equals("count")) {
            @SuppressWarnings("unchecked")
            Materialized<Object, Long, KeyValueStore<Bytes, byte[]>> store =
                (Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) (Materialized<?, ?, ?>) g.keyValue(op, STRING, LONG);
            g.putTable(op, grouped.count(g.named(op), store), STRING, LONG);
        } else if (op.op.equals("reduce")) {
            g.put(op.id, grouped.reduce((a, b) -> Functions.reduce(op.fn, a, b), g.named(op), g.keyValue(op, STRING, STRING)));
        } else {
            g.putTable(op, grouped.aggregate(() -> "0", (k, v, row) -> Functions.add(op.fn, row, v), g.named(op), g.keyValue(op, STRING, STRING)), STRING, STRING);
        }
    }

    /** cogroup combines the groups that it is made from; each marks what it adds with its place. */
    static CogroupedKStream<Object, Object> cogrouped(Graph g, Scenario.Op op, Graph.Nulls nulls) {
        CogroupedKStream<Object, Object> all = null;
        for (int i = 0; i < op.from.size(); i++) {
            KGroupedStream<Object, Object> grouped = g.grouped(op, i, nulls);
            int place = i;
            if (all == null) {
                all = grouped.cogroup((k, v, row) -> Functions.add(op.fn, row, place + Functions.text(v)));
            } else {
                all = all.cogroup(grouped, (k, v, row) -> Functions.add(op.fn, row, place + Functions.text(v)));
            }
        }
        return all;
    }

    private void cogroup(Scenario.Op op) {
        g.putTable(op, cogrouped(g, op, Graph.Nulls.IGNORED).aggregate(() -> "0", g.named(op), g.keyValue(op, STRING, STRING)), STRING, STRING);
    }

    private void aggregateTable(Scenario.Op op) {
        KGroupedTable<Object, Object> grouped = g.from(op, 0).as();
        if (op.op.equals("tcount")) {
            @SuppressWarnings("unchecked")
            Materialized<Object, Long, KeyValueStore<Bytes, byte[]>> store =
                (Materialized<Object, Long, KeyValueStore<Bytes, byte[]>>) (Materialized<?, ?, ?>) g.keyValue(op, STRING, LONG);
            g.put(op.id, new Graph.Handle(grouped.count(g.named(op), store), STRING, LONG));
        } else if (op.op.equals("treduce")) {
            g.put(op.id, grouped.reduce((a, b) -> Functions.reduce(op.fn, a, b), (a, b) -> Functions.subtract("", a, b), g.named(op), g.keyValue(op, STRING, STRING)));
        } else {
            g.put(op.id, grouped.aggregate(() -> "0", (k, v, row) -> Functions.add(op.fn, row, v),
                (k, v, row) -> Functions.subtract(op.fn, row, v), g.named(op), g.keyValue(op, STRING, STRING)));
        }
    }

    private void join(Scenario.Op op) {
        KTable<Object, Object> other = g.from(op, 1).table();
        ValueJoiner<Object, Object, Object> with = joiner(op);
        if (!op.store) {
            g.put(op.id, switch (op.op) {
                case "tablejoin" -> in(op).join(other, with, g.named(op));
                case "tableleft" -> in(op).leftJoin(other, with, g.named(op));
                default -> in(op).outerJoin(other, with, g.named(op));
            });
            return;
        }
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = g.keyValue(op, STRING, STRING);
        g.put(op.id, switch (op.op) {
            case "tablejoin" -> in(op).join(other, with, g.named(op), store);
            case "tableleft" -> in(op).leftJoin(other, with, g.named(op), store);
            default -> in(op).outerJoin(other, with, g.named(op), store);
        });
    }

    private void joinForeign(Scenario.Op op) {
        KTable<Object, Object> other = g.from(op, 1).table();
        if (g.diff.contains("foreign-empty-value")) {
            other = other.mapValues(v -> v); // its encoding is the default one: Marked
        }
        Function<Object, Object> foreign = v -> Functions.key(op.key, "", v);
        ValueJoiner<Object, Object, Object> with = joiner(op);
        TableJoined<Object, Object> named = TableJoined.as(op.id);
        if (!op.store) {
            g.put(op.id, op.op.equals("foreignjoin")
                ? in(op).join(other, foreign, with, named) : in(op).leftJoin(other, foreign, with, named));
            return;
        }
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = g.keyValue(op, STRING, STRING);
        g.put(op.id, op.op.equals("foreignjoin")
            ? in(op).join(other, foreign, with, named, store) : in(op).leftJoin(other, foreign, with, named, store));
    }
}
