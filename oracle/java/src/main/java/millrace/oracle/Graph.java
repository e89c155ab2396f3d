package millrace.oracle;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;

/** What a scenario's operators have built so far: the handles by their names, with the serdes of their content. */
@SuppressWarnings("unchecked")
final class Graph {
    static final Serde<Object> STRING = (Serde<Object>) (Serde<?>) Serdes.String();
    static final Serde<Object> LONG = (Serde<Object>) (Serde<?>) Serdes.Long();

    /** A handle of any kind: KStream, KTable, GlobalKTable, grouped or cogrouped. The changes of a bare table have no headers. */
    record Handle(Object node, Serde<Object> keys, Serde<Object> values, boolean bare) {
        Handle(Object node, Serde<Object> keys, Serde<Object> values) {
            this(node, keys, values, false);
        }

        KStream<Object, Object> stream() {
            return (KStream<Object, Object>) node;
        }

        KTable<Object, Object> table() {
            return (KTable<Object, Object>) node;
        }

        <T> T as() {
            return (T) node;
        }
    }

    /** A stream and how it is grouped, which is done only when it is aggregated. */
    record Grouping(KStream<Object, Object> stream, Function<KStream<Object, Object>, KGroupedStream<Object, Object>> by) {}

    /** The kinds of stores whose content is reported. */
    enum Kind { KEY_VALUE, VERSIONED, WINDOW, SESSION, JOIN }

    /** A store whose content is reported. The retention bounds which of its rows are. */
    record Stored(String name, Kind kind, long retention) {
        Stored(String name, Kind kind) {
            this(name, kind, Long.MAX_VALUE);
        }
    }

    final StreamsBuilder builder;
    final Set<String> diff;
    final Origin origin = new Origin();
    final Map<String, Serde<Object>> inputs = new LinkedHashMap<>();
    final Map<String, Handle> outputs = new LinkedHashMap<>();
    /** By the names under which they are reported. */
    final Map<String, Stored> stores = new LinkedHashMap<>();
    private final Map<String, Handle> handles = new HashMap<>();

    Graph(StreamsBuilder builder, Set<String> diff) {
        this.builder = builder;
        this.diff = diff;
    }

    void put(String id, Handle h) {
        handles.put(id, h);
    }

    void put(String id, Object node) {
        put(id, new Handle(node, STRING, STRING));
    }

    Handle from(Scenario.Op op, int i) {
        Handle h = handles.get(op.from.get(i));
        if (h == null) {
            throw new IllegalArgumentException(op.id + " reads " + op.from.get(i) + ", which there is not");
        }
        return h;
    }

    /** How an aggregation treats null values: it counts them, or ignores them, or must not see them. */
    enum Nulls { COUNTED, IGNORED, HIDDEN }

    /** grouped returns a group that an operator aggregates. */
    KGroupedStream<Object, Object> grouped(Scenario.Op op, int i, Nulls nulls) {
        Grouping g = from(op, i).as();
        return g.by().apply(switch (nulls) {
            case COUNTED -> g.stream();
            case IGNORED -> Skipped.nulls(g.stream());
            case HIDDEN -> g.stream().filter((k, v) -> v != null || k == null);
        });
    }

    /** putTable names a table whose old values may not be what it held before: a table with a store behind it knows. */
    void putTable(Scenario.Op op, KTable<?, ?> table, Serde<?> keySerde, Serde<?> valueSerde) {
        Serde<Object> keys = (Serde<Object>) keySerde;
        Serde<Object> values = (Serde<Object>) valueSerde;
        KTable<Object, Object> t = (KTable<Object, Object>) table;
        if (op.op.startsWith("session.") && !op.emit.equals("close") && diff.contains("session-headers")) {
            t = origin.own(t.toStream()).toTable(Materialized.with(keys, values));
        }
        if (diff.contains("old-value")) {
            Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> held =
                Materialized.<Object, Object, KeyValueStore<Bytes, byte[]>>as(op.id + ".held").withKeySerde(keys).withValueSerde(values);
            t = t.mapValues(v -> v, held);
        }
        put(op.id, new Handle(t, keys, values, op.emit.equals("close") && diff.contains("close-headers")));
    }

    Named named(Scenario.Op op) {
        return Named.as(op.id);
    }

    /** A store named after the operator, with content of the given serdes. */
    <S extends StateStore> Materialized<Object, Object, S> store(
            Scenario.Op op, Kind kind, Serde<Object> keys, Serde<Object> values) {
        stores.put(op.id, new Stored(op.id, kind));
        return Materialized.<Object, Object, S>as(op.id).withKeySerde(keys).withValueSerde(values);
    }

    Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> keyValue(
            Scenario.Op op, Serde<Object> keys, Serde<Object> values) {
        return store(op, Kind.KEY_VALUE, keys, values);
    }
}
