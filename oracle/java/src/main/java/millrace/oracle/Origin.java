package millrace.oracle;

import java.util.Objects;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;

/** The record that is in work, as its source saw it, and what can be told from it about the headers of others. */
final class Origin {
    private Object key;
    private long timestamp;
    private Headers headers = new RecordHeaders();

    /** noted remembers the records that pass. */
    KStream<Object, Object> noted(KStream<Object, Object> s) {
        return each(s, r -> {
            key = r.key();
            timestamp = r.timestamp();
            headers = new RecordHeaders(r.headers());
            return r;
        });
    }

    /** bare takes away all headers. */
    KStream<Object, Object> bare(KStream<Object, Object> s) {
        return each(s, r -> r.withHeaders(new RecordHeaders()));
    }

    /** bareOfOthers takes them away from rows without a match that another record brings to light. */
    KStream<Object, Object> bareOfOthers(KStream<Object, Object> s) {
        return each(s, r -> {
            String v = r.value().toString();
            boolean unmatched = v.startsWith("~/") || v.endsWith("/~");
            boolean own = Objects.equals(r.key(), key) && r.timestamp() == timestamp;
            return unmatched && !own ? r.withHeaders(new RecordHeaders()) : r;
        });
    }

    /** own gives back the headers of the record in work. */
    KStream<Object, Object> own(KStream<Object, Object> s) {
        return each(s, r -> r.withHeaders(new RecordHeaders(headers)));
    }

    private static KStream<Object, Object> each(KStream<Object, Object> s, UnaryOperator<FixedKeyRecord<Object, Object>> fn) {
        return s.processValues(() -> new ContextualFixedKeyProcessor<Object, Object, Object>() {
            @Override
            public void process(FixedKeyRecord<Object, Object> r) {
                context().forward(fn.apply(r));
            }
        });
    }
}
