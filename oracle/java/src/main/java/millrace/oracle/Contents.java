package millrace.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The final content of stores, as a list of [key, value, timestamp]. Sessions have the time of their end; rows of a join's
 * window have none, and their keys do not show where the window ends. Of a versioned store, the latest version of each key is
 * told, and the one that is found at each time.
 */
final class Contents {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final TopologyTestDriver driver;
    private final SortedSet<String> keys;
    private final SortedSet<Long> times;

    /** keys and times are those for which versioned stores are asked. */
    Contents(TopologyTestDriver driver, SortedSet<String> keys, SortedSet<Long> times) {
        this.driver = driver;
        this.keys = keys;
        this.times = times;
    }

    ArrayNode of(String store, Graph.Stored stored) {
        ArrayNode rows = JSON.createArrayNode();
        switch (stored.kind()) {
            case KEY_VALUE -> {
                try (KeyValueIterator<Object, ValueAndTimestamp<Object>> all = driver.getTimestampedKeyValueStore(store).all()) {
                    all.forEachRemaining(e -> add(rows, e.key, e.value.value(), e.value.timestamp()));
                }
            }
            case WINDOW -> windows(rows, driver.getTimestampedWindowStore(store), stored.retention());
            case SESSION -> sessions(rows, driver.getSessionStore(store), stored.retention());
            case JOIN -> {
                try (KeyValueIterator<Windowed<Object>, Object> all = driver.getWindowStore(store).all()) {
                    all.forEachRemaining(e -> add(rows, e.key.key() + "@" + e.key.window().start(), e.value, 0));
                }
            }
            case VERSIONED -> versions(rows, driver.getVersionedKeyValueStore(store));
            default -> throw new IllegalStateException();
        }
        return rows;
    }

    private static void add(ArrayNode rows, Object key, Object value, long timestamp) {
        rows.addArray().add(key.toString()).add(value.toString()).add(timestamp);
    }

    /** windows leaves out rows that are beyond the retention, which the store may keep for longer. */
    private static void windows(ArrayNode rows, WindowStore<Object, ValueAndTimestamp<Object>> store, long retention) {
        List<KeyValue<Windowed<Object>, ValueAndTimestamp<Object>>> list = new ArrayList<>();
        try (KeyValueIterator<Windowed<Object>, ValueAndTimestamp<Object>> all = store.all()) {
            all.forEachRemaining(list::add);
        }
        long latest = list.stream().mapToLong(e -> e.key.window().start()).max().orElse(0);
        for (KeyValue<Windowed<Object>, ValueAndTimestamp<Object>> e : list) {
            if (e.key.window().start() > latest - retention) {
                add(rows, Streams.show(e.key), e.value.value(), e.value.timestamp());
            }
        }
    }

    private static void sessions(ArrayNode rows, SessionStore<Object, Object> store, long retention) {
        List<KeyValue<Windowed<Object>, Object>> list = new ArrayList<>();
        try (KeyValueIterator<Windowed<Object>, Object> all = store.fetch(null, null)) {
            all.forEachRemaining(list::add);
        }
        long latest = list.stream().mapToLong(e -> e.key.window().end()).max().orElse(0);
        for (KeyValue<Windowed<Object>, Object> e : list) {
            if (e.key.window().end() > latest - retention) {
                add(rows, Streams.show(e.key), e.value, e.key.window().end());
            }
        }
    }

    private void versions(ArrayNode rows, VersionedKeyValueStore<Object, Object> store) {
        for (String key : keys) {
            version(rows, key, store.get(key));
            for (long at : times) {
                version(rows, key + "@" + at, store.get(key, at));
            }
        }
    }

    private static void version(ArrayNode rows, String key, VersionedRecord<Object> found) {
        if (found != null) {
            add(rows, key, found.value(), found.timestamp());
        }
    }
}
