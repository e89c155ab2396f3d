package millrace.oracle;

import static java.time.Duration.ofMillis;
import static millrace.oracle.Graph.LONG;
import static millrace.oracle.Graph.STRING;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Aggregations in windows. An operator is named WINDOW.AGGREGATION: tumbling, hopping, sliding or session, then count,
 * reduce, aggregate or cogroup.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Windows {
    private final Graph g;

    Windows(Graph g) {
        this.g = g;
    }

    /** build adds an operator; false if it is none of these. */
    boolean build(Scenario.Op op) {
        if (op.op.equals("suppress")) {
            suppress(op);
            return true;
        }
        String[] parts = op.op.split("\\.");
        if (parts.length != 2) {
            return false;
        }
        KTable<?, ?> made = parts[0].equals("session") ? sessions(op, parts[1]) : windows(op, parts[0], parts[1]);
        Serde<?> keys = parts[0].equals("session")
            ? WindowedSerdes.sessionWindowedSerdeFrom(String.class)
            : WindowedSerdes.timeWindowedSerdeFrom(String.class, op.n("size"));
        g.putTable(op, made, keys, parts[1].equals("count") ? LONG : STRING);
        return true;
    }

    /** nulls: in time and session windows, Kafka Streams counts null values and shows them to functions. */
    private Graph.Nulls nulls(String window, String aggregation) {
        if (window.equals("sliding")) {
            return Graph.Nulls.IGNORED;
        }
        boolean hidden = g.diff.contains("window-null-value") && !aggregation.equals("count");
        return hidden ? Graph.Nulls.HIDDEN : Graph.Nulls.COUNTED;
    }

    private KTable<?, ?> windows(Scenario.Op op, String window, String aggregation) {
        if (aggregation.equals("cogroup")) {
            var all = Tables.cogrouped(g, op, nulls(window, aggregation));
            TimeWindowedCogroupedKStream<Object, Object> in =
                window.equals("sliding") ? all.windowedBy(sliding(op)) : all.windowedBy(time(op, window));
            return in.aggregate(() -> "0", g.named(op), retained(op));
        }
        KGroupedStream<Object, Object> grouped = g.grouped(op, 0, nulls(window, aggregation));
        TimeWindowedKStream<Object, Object> in =
            window.equals("sliding") ? grouped.windowedBy(sliding(op)) : grouped.windowedBy(time(op, window));
        in = in.emitStrategy(emit(op));
        return switch (aggregation) {
            case "count" -> in.count(g.named(op), (Materialized) this.<WindowStore<Bytes, byte[]>>retained(op, Graph.Kind.WINDOW, LONG));
            case "reduce" -> in.reduce((a, b) -> Functions.reduce(op.fn, a, b), g.named(op), retained(op));
            case "aggregate" -> in.aggregate(() -> "0", (k, v, row) -> Functions.add(op.fn, row, v), g.named(op), retained(op));
            default -> throw new IllegalArgumentException("no aggregation " + aggregation);
        };
    }

    private KTable<?, ?> sessions(Scenario.Op op, String aggregation) {
        SessionWindows gap = SessionWindows.ofInactivityGapAndGrace(op.ms("size"), op.ms("grace"));
        Materialized<Object, Object, SessionStore<Bytes, byte[]>> store =
            retained(op, Graph.Kind.SESSION, aggregation.equals("count") ? LONG : STRING);
        if (aggregation.equals("cogroup")) {
            SessionWindowedCogroupedKStream<Object, Object> in = Tables.cogrouped(g, op, nulls("session", aggregation)).windowedBy(gap);
            return in.aggregate(() -> "0", (k, a, b) -> Functions.merge(a, b), g.named(op), store);
        }
        KGroupedStream<Object, Object> grouped = g.grouped(op, 0, nulls("session", aggregation));
        SessionWindowedKStream<Object, Object> in = grouped.windowedBy(gap).emitStrategy(emit(op));
        return switch (aggregation) {
            case "count" -> in.count(g.named(op), (Materialized) store);
            case "reduce" -> in.reduce((a, b) -> Functions.reduce(op.fn, a, b), g.named(op), store);
            case "aggregate" -> in.aggregate(() -> "0", (k, v, row) -> Functions.add(op.fn, row, v),
                (k, a, b) -> Functions.merge(a, b), g.named(op), store);
            default -> throw new IllegalArgumentException("no aggregation " + aggregation);
        };
    }

    private static TimeWindows time(Scenario.Op op, String window) {
        TimeWindows w = TimeWindows.ofSizeAndGrace(op.ms("size"), op.ms("grace"));
        return window.equals("hopping") ? w.advanceBy(op.ms("advance")) : w;
    }

    private static SlidingWindows sliding(Scenario.Op op) {
        return SlidingWindows.ofTimeDifferenceAndGrace(op.ms("size"), op.ms("grace"));
    }

    private static EmitStrategy emit(Scenario.Op op) {
        return op.emit.equals("close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
    }

    private Materialized<Object, Object, WindowStore<Bytes, byte[]>> retained(Scenario.Op op) {
        return retained(op, Graph.Kind.WINDOW, STRING);
    }

    private <S extends StateStore> Materialized<Object, Object, S> retained(Scenario.Op op, Graph.Kind kind, Serde<Object> values) {
        boolean lasting = op.emit.equals("close") && g.diff.contains("close-keeps-all");
        if (kind == Graph.Kind.SESSION && lasting) {
            g.stores.put(op.id, new Graph.Stored(op.id, kind, retention(op)));
            long shown = op.n("size") + op.n("grace") + 1;
            return (Materialized) Materialized.as(new LastingSessions(op.id, shown))
                .withKeySerde((Serde) STRING).withValueSerde((Serde) values).withRetention(ofMillis(shown));
        }
        Materialized<Object, Object, S> store = g.store(op, kind, STRING, values);
        g.stores.put(op.id, new Graph.Stored(op.id, kind, retention(op)));
        return store.withRetention(ofMillis(lasting ? 1L << 50 : retention(op)));
    }

    /** retention is as given, or Kafka Streams' default, or Millrace's. */
    private long retention(Scenario.Op op) {
        if (op.has("retention")) {
            return op.n("retention");
        }
        boolean longer = g.diff.contains("retention-edge");
        long size = op.n("size");
        if (op.op.startsWith("sliding")) {
            return longer ? 3 * size + op.n("grace") + 1 : 2 * size + op.n("grace");
        }
        return size + op.n("grace") + (longer && op.op.startsWith("session") ? 1 : 0);
    }

    private void suppress(Scenario.Op op) {
        Graph.Handle h = g.from(op, 0);
        KTable table = h.table();
        Suppressed<?> rule = op.until.equals("close")
            ? Suppressed.untilWindowCloses(op.has("records")
                ? Suppressed.BufferConfig.maxRecords(op.n("records")).shutDownWhenFull()
                : Suppressed.BufferConfig.unbounded()).withName(op.id)
            : Suppressed.untilTimeLimit(op.ms("limit"), bounds(op)).withName(op.id);
        g.putTable(op, table.suppress(rule), h.keys(), h.values());
    }

    static Suppressed.BufferConfig<?> bounds(Scenario.Op op) {
        return op.has("records")
            ? Suppressed.BufferConfig.maxRecords(op.n("records")).emitEarlyWhenFull()
            : Suppressed.BufferConfig.unbounded();
    }
}
