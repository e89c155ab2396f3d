package millrace.oracle;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A store of sessions that shows those beyond retention to who looks for closed sessions, and to nobody else. It lists those
 * as the store on RocksDB does: by end, start and key.
 */
record LastingSessions(String name, long retention) implements SessionBytesStoreSupplier {
    private static final Comparator<KeyValue<Windowed<Bytes>, byte[]>> ORDER = Comparator
        .<KeyValue<Windowed<Bytes>, byte[]>>comparingLong(e -> e.key.window().end())
        .thenComparingLong(e -> e.key.window().start())
        .thenComparing(e -> e.key.key());

    @Override
    @SuppressWarnings("unchecked")
    public SessionStore<Bytes, byte[]> get() {
        SessionStore<Bytes, byte[]> all = Stores.inMemorySessionStore(name, Duration.ofMillis(1L << 50)).get();
        long[] latest = {-1};
        return (SessionStore<Bytes, byte[]>) Proxy.newProxyInstance(
            getClass().getClassLoader(), new Class<?>[] {SessionStore.class}, (proxy, method, args) -> {
                if (method.getName().equals("put")) {
                    latest[0] = Math.max(latest[0], ((Windowed<Bytes>) args[0]).window().end());
                }
                Object result;
                try {
                    result = method.invoke(all, args);
                } catch (InvocationTargetException e) {
                    throw e.getCause();
                }
                if (!method.getName().equals("findSessions")) {
                    return result;
                }
                KeyValueIterator<Windowed<Bytes>, byte[]> found = (KeyValueIterator<Windowed<Bytes>, byte[]>) result;
                return args.length == 2
                    ? new Listed(found, e -> true, ORDER)
                    : new Listed(found, e -> e.key.window().end() > latest[0] - retention, null);
            });
    }

    @Override
    public long segmentIntervalMs() {
        return 1;
    }

    @Override
    public long retentionPeriod() {
        return retention;
    }

    @Override
    public String metricsScope() {
        return "in-memory-session";
    }

    /** Listed iterates over some entries of an iterator in an order. */
    private static final class Listed implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        private final List<KeyValue<Windowed<Bytes>, byte[]>> list = new ArrayList<>();
        private final Iterator<KeyValue<Windowed<Bytes>, byte[]>> rest;

        Listed(
                KeyValueIterator<Windowed<Bytes>, byte[]> found,
                Predicate<KeyValue<Windowed<Bytes>, byte[]>> shown,
                Comparator<KeyValue<Windowed<Bytes>, byte[]>> order) {
            try (found) {
                found.forEachRemaining(e -> {
                    if (shown.test(e)) {
                        list.add(e);
                    }
                });
            }
            if (order != null) {
                list.sort(order);
            }
            rest = list.iterator();
        }

        @Override
        public boolean hasNext() {
            return rest.hasNext();
        }

        @Override
        public KeyValue<Windowed<Bytes>, byte[]> next() {
            return rest.next();
        }

        @Override
        public Windowed<Bytes> peekNextKey() {
            throw new UnsupportedOperationException();
        }

        @Override
        public void close() {}
    }
}
