package millrace.oracle;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Text whose encoding is never empty: a mark goes before it. It is the default of tables whose serde was not given. */
public final class Marked implements Serde<Object> {
    @Override
    public Serializer<Object> serializer() {
        return (topic, v) -> v == null ? null : ("+" + v).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public Deserializer<Object> deserializer() {
        return (topic, data) -> data == null ? null : new String(data, 1, data.length - 1, StandardCharsets.UTF_8);
    }
}
