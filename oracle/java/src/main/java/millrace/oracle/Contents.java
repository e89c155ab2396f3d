package millrace.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.SortedSet;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * The final content of stores, as a list of [key, value, timestamp]. Session and versioned stores can only be asked key by
 * key; sessions have no timestamp, so theirs is the end of the window.
 */
final class Contents {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final TopologyTestDriver driver;
    private final SortedSet<String> keys;

    Contents(TopologyTestDriver driver, SortedSet<String> keys) {
        this.driver = driver;
        this.keys = keys;
    }

    ArrayNode of(String store, Graph.Kind kind) {
        ArrayNode rows = JSON.createArrayNode();
        switch (kind) {
            case KEY_VALUE -> {
                try (KeyValueIterator<Object, ValueAndTimestamp<Object>> all = driver.getTimestampedKeyValueStore(store).all()) {
                    all.forEachRemaining(e -> add(rows, e.key, e.value));
                }
            }
            case WINDOW -> {
                try (KeyValueIterator<Windowed<Object>, ValueAndTimestamp<Object>> all = driver.getTimestampedWindowStore(store).all()) {
                    all.forEachRemaining(e -> add(rows, Streams.show(e.key), e.value));
                }
            }
            case SESSION -> sessions(rows, driver.getSessionStore(store));
            case VERSIONED -> versions(rows, driver.getVersionedKeyValueStore(store));
            default -> throw new IllegalStateException();
        }
        return rows;
    }

    private static void add(ArrayNode rows, Object key, ValueAndTimestamp<Object> row) {
        rows.addArray().add(key.toString()).add(row.value().toString()).add(row.timestamp());
    }

    private void sessions(ArrayNode rows, SessionStore<Object, Object> store) {
        for (String key : keys) {
            try (KeyValueIterator<Windowed<Object>, Object> found = store.fetch(key)) {
                while (found.hasNext()) {
                    KeyValue<Windowed<Object>, Object> e = found.next();
                    rows.addArray().add(Streams.show(e.key)).add(e.value.toString()).add(e.key.window().end());
                }
            }
        }
    }

    private void versions(ArrayNode rows, VersionedKeyValueStore<Object, Object> store) {
        for (String key : keys) {
            VersionedRecord<Object> r = store.get(key);
            if (r != null) {
                rows.addArray().add(key).add(r.value().toString()).add(r.timestamp());
            }
        }
    }
}
