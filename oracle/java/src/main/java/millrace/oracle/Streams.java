package millrace.oracle;

import static java.time.Duration.ofMillis;
import static millrace.oracle.Graph.STRING;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueStore;

/** Operators on streams. */
final class Streams {
    private static final ValueJoiner<Object, Object, Object> JOINER = (a, b) -> Functions.join("", a, b);

    private final Graph g;
    private final boolean nullsPassBy;

    Streams(Graph g) {
        this.g = g;
        this.nullsPassBy = g.diff.contains("null-value");
    }

    /** build adds an operator; false if it is none of these. */
    boolean build(Scenario.Op op) {
        switch (op.op) {
            case "stream" -> source(op);
            case "globaltable" -> globalTable(op);
            case "map", "flatmap", "selectkey" -> rekey(op, present(in(op)));
            case "flatmapvalues" -> g.put(op.id, present(in(op)).flatMapValues(v -> Functions.flat(v), g.named(op)));
            case "mapvalues" -> g.put(op.id, in(op).mapValues(v -> passes(v) ? v : Functions.value(op.fn, v), g.named(op)));
            case "filter" -> g.put(op.id, in(op).filter((k, v) -> passes(v) || Functions.keep(op.fn, v), g.named(op)));
            case "filternot" -> g.put(op.id, in(op).filterNot((k, v) -> !passes(v) && Functions.keep(op.fn, v), g.named(op)));
            case "merge" -> merge(op);
            case "split" -> split(op);
            case "through" -> through(op);
            case "groupbykey" -> g.put(op.id, new Graph.Grouping(in(op), s -> s.groupByKey(Grouped.with(op.id, STRING, STRING))));
            case "groupby" -> g.put(op.id, new Graph.Grouping(present(in(op)),
                s -> s.groupBy((k, v) -> Functions.key(op.key, k, v), Grouped.with(op.id, STRING, STRING))));
            case "streamtablejoin", "streamtableleft" -> joinTable(op);
            case "streamglobaljoin", "streamgloballeft" -> joinGlobal(op);
            case "streamjoin", "streamleft", "streamouter" -> joinStream(op);
            case "to" -> sink(op);
            default -> {
                return false;
            }
        }
        return true;
    }

    private KStream<Object, Object> in(Scenario.Op op) {
        return g.from(op, 0).stream();
    }

    private boolean passes(Object v) {
        return nullsPassBy && v == null;
    }

    /** present leaves out null values where Millrace does not show them to a function. */
    private KStream<Object, Object> present(KStream<Object, Object> s) {
        return nullsPassBy ? s.filter((k, v) -> v != null) : s;
    }

    private void source(Scenario.Op op) {
        String topic = op.from.get(0);
        g.inputs.put(topic, STRING);
        g.put(op.id, g.origin.noted(g.builder.stream(topic, Consumed.with(STRING, STRING).withName(op.id))));
    }

    private void globalTable(Scenario.Op op) {
        String topic = op.from.get(0);
        g.inputs.put(topic, STRING);
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = g.keyValue(op, STRING, STRING);
        g.put(op.id, (Object) g.builder.globalTable(topic, Consumed.with(STRING, STRING), store));
    }

    private void rekey(Scenario.Op op, KStream<Object, Object> s) {
        g.put(op.id, switch (op.op) {
            case "map" -> s.map((k, v) -> KeyValue.pair(Functions.key(op.key, k, v), Functions.value(op.fn, v)), g.named(op));
            case "selectkey" -> s.selectKey((k, v) -> Functions.key(op.key, k, v), g.named(op));
            default -> s.flatMap((k, v) -> pairs(op, k, v), g.named(op));
        });
    }

    private static List<KeyValue<Object, Object>> pairs(Scenario.Op op, Object k, Object v) {
        List<KeyValue<Object, Object>> out = new ArrayList<>();
        for (Object part : Functions.flat(v)) {
            out.add(KeyValue.pair(Functions.key(op.key, k, part), part));
        }
        return out;
    }

    private void merge(Scenario.Op op) {
        KStream<Object, Object> s = in(op);
        for (int i = 1; i < op.from.size(); i++) {
            s = s.merge(g.from(op, i).stream());
        }
        g.put(op.id, s);
    }

    /** split makes the streams ID.NAME of each condition and ID.rest. */
    private void split(Scenario.Op op) {
        KStream<Object, Object> s = in(op);
        if (nullsPassBy) {
            splitToAll(op, s);
            return;
        }
        BranchedKStream<Object, Object> b = s.split(g.named(op));
        for (String fn : op.branches) {
            b = b.branch((k, v) -> Functions.keep(fn, v), Branched.withConsumer(t -> g.put(op.id + "." + fn, (Object) t), fn));
        }
        b.defaultBranch(Branched.withConsumer(t -> g.put(op.id + ".rest", (Object) t), "rest"));
    }

    private void splitToAll(Scenario.Op op, KStream<Object, Object> s) {
        for (int i = 0; i <= op.branches.size(); i++) {
            int own = i;
            Predicate<Object, Object> takes = (k, v) -> v == null || branchOf(op, v) == own;
            String name = i < op.branches.size() ? op.branches.get(i) : "rest";
            g.put(op.id + "." + name, s.filter(takes));
        }
    }

    private static int branchOf(Scenario.Op op, Object v) {
        for (int i = 0; i < op.branches.size(); i++) {
            if (Functions.keep(op.branches.get(i), v)) {
                return i;
            }
        }
        return op.branches.size();
    }

    /** through: Kafka Streams drops what has no key on its way. */
    private void through(Scenario.Op op) {
        KStream<Object, Object> s = in(op);
        KStream<Object, Object> moved =
            s.repartition(Repartitioned.<Object, Object>as(op.id).withKeySerde(STRING).withValueSerde(STRING));
        g.put(op.id, g.diff.contains("through-null-key") ? moved.merge(s.filter((k, v) -> k == null)) : moved);
    }

    private void joinTable(Scenario.Op op) {
        boolean withoutNullKeys = op.op.equals("streamtableleft") && op.has("grace") && g.diff.contains("grace-null-key");
        KStream<Object, Object> in = withoutNullKeys ? Skipped.nulls(in(op)) : Skipped.allNulls(in(op));
        Joined<Object, Object, Object> with = Joined.with(STRING, STRING, STRING, op.id);
        if (op.has("grace")) {
            with = with.withGracePeriod(op.ms("grace"));
        }
        if (op.op.equals("streamtablejoin")) {
            g.put(op.id, in.join(g.from(op, 1).table(), JOINER, with));
        } else if (withoutNullKeys) {
            // Kafka Streams fails on a record without a key, since its buffer cannot take it.
            KStream<Object, Object> without = in.filter((k, v) -> k == null && v != null).mapValues(v -> JOINER.apply(v, null));
            g.put(op.id, without.merge(in.filter((k, v) -> k != null).leftJoin(g.from(op, 1).table(), JOINER, with)));
        } else {
            g.put(op.id, in.leftJoin(g.from(op, 1).table(), JOINER, with));
        }
    }

    private void joinGlobal(Scenario.Op op) {
        GlobalKTable<Object, Object> table = g.from(op, 1).as();
        KStream<Object, Object> in = Skipped.allNulls(in(op));
        g.put(op.id, op.op.endsWith("left")
            ? in.leftJoin(table, (k, v) -> Functions.key(op.key, k, v), JOINER, g.named(op))
            : in.join(table, (k, v) -> Functions.key(op.key, k, v), JOINER, g.named(op)));
    }

    private void joinStream(Scenario.Op op) {
        long widest = Math.max(op.n("before"), op.n("after"));
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ofMillis(widest), op.ms("grace"))
            .before(op.ms("before")).after(op.ms("after"));
        StreamJoined<Object, Object, Object> with =
            StreamJoined.with(STRING, STRING, STRING).withName(op.id).withStoreName(op.id);
        if (g.diff.contains("join-same-time")) {
            with = with.withDslStoreSuppliers(new LongerRetention());
        }
        long retention = Math.max(1, op.n("before") + op.n("after") + op.n("grace"));
        KStream<Object, Object> left = Skipped.nulls(in(op), retention);
        KStream<Object, Object> right = Skipped.nulls(g.from(op, 1).stream(), retention);
        KStream<Object, Object> joined = switch (op.op) {
            case "streamjoin" -> left.join(right, JOINER, windows, with);
            case "streamleft" -> left.leftJoin(right, JOINER, windows, with);
            default -> left.outerJoin(right, JOINER, windows, with);
        };
        joinStores(op);
        g.put(op.id, g.diff.contains("join-headers") ? g.origin.bareOfOthers(joined) : joined);
    }

    /**
     * joinStores names the stores of both sides. Those of an outer side have another name. One whose windows have no length
     * cannot be listed.
     */
    private void joinStores(Scenario.Op op) {
        if (op.n("before") + op.n("after") == 0) {
            return;
        }
        String left = op.op.equals("streamouter") ? "-outer-this-join-store" : "-this-join-store";
        String right = op.op.equals("streamjoin") ? "-other-join-store" : "-outer-other-join-store";
        g.stores.put(op.id + ".left", new Graph.Stored(op.id + left, Graph.Kind.JOIN));
        g.stores.put(op.id + ".right", new Graph.Stored(op.id + right, Graph.Kind.JOIN));
    }

    private void sink(Scenario.Op op) {
        Graph.Handle h = g.from(op, 0);
        KStream<Object, Object> s = h.stream().selectKey((k, v) -> k instanceof Windowed<?> w ? show(w) : k);
        s.to(op.id, Produced.with(STRING, h.values()));
        g.outputs.put(op.id, h);
    }

    static String show(Windowed<?> w) {
        return w.key() + "@" + w.window().start() + "-" + w.window().end();
    }
}
