package millrace.oracle;

import java.lang.reflect.Proxy;
import java.util.List;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.slf4j.Logger;
import org.slf4j.helpers.NOPLogger;

/**
 * Counts what Kafka Streams counts as dropped though nothing is lost by it: see the difference ignored-records. Some of that
 * can only be told by what is logged. The test driver works on one thread.
 */
public final class Skipped {
    private static final List<String> MESSAGES = List.of(
        "Skipping record due to null foreign key",
        "Dropping FK-join response due to hash mismatch",
        "Skipping out-of-order record from versioned table while performing table-table join");

    private static long count;

    private Skipped() {}

    static void begin() {
        count = 0;
    }

    /** How many since begin. */
    static long count() {
        return count;
    }

    /** logger is SLF4J's. That of a class that logs one of the messages counts them; others do nothing. */
    public static Logger logger(String name) {
        if (!name.contains(".foreignkeyjoin.") && !name.contains(".KTableKTable")) {
            return NOPLogger.NOP_LOGGER;
        }
        return (Logger) Proxy.newProxyInstance(Skipped.class.getClassLoader(), new Class<?>[] {Logger.class}, (proxy, method, args) -> {
            if (args != null && args[0] instanceof String message && MESSAGES.stream().anyMatch(message::startsWith)) {
                count++;
            }
            return method.getReturnType() == boolean.class ? Boolean.TRUE : null;
        });
    }

    /** nulls counts the records with a key but no value: those without a key count as such. */
    static KStream<Object, Object> nulls(KStream<Object, Object> s) {
        return nulls(s, Long.MAX_VALUE);
    }

    /** allNulls counts the records with no value. */
    static KStream<Object, Object> allNulls(KStream<Object, Object> s) {
        return s.peek((k, v) -> count += v == null ? 1 : 0);
    }

    /** nulls counts such a record twice when its time is beyond the retention of the store that is told of it. */
    static KStream<Object, Object> nulls(KStream<Object, Object> s, long retention) {
        long[] latest = {0};
        return s.processValues(() -> new ContextualFixedKeyProcessor<Object, Object, Object>() {
            @Override
            public void process(FixedKeyRecord<Object, Object> r) {
                if (r.key() != null) {
                    latest[0] = Math.max(latest[0], r.timestamp());
                    if (r.value() == null) {
                        count += r.timestamp() <= latest[0] - retention ? 2 : 1;
                    }
                }
                context().forward(r);
            }
        });
    }
}
