package millrace.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.TreeSet;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/** One scenario on Kafka Streams' test driver. */
final class Run {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String HEADER = "step";

    private final Graph graph;
    private final TopologyTestDriver driver;
    private final Map<String, TestInputTopic<Object, Object>> inputs = new LinkedHashMap<>();
    private final Map<String, TestOutputTopic<Object, Object>> outputs = new LinkedHashMap<>();
    private final TreeSet<String> keys = new TreeSet<>();
    private final TreeSet<Long> times = new TreeSet<>();
    private final ObjectNode answer = JSON.createObjectNode();
    private final ArrayNode out = JSON.createArrayNode();

    /**
     * The answer has id, out (step, topic, key, value, timestamp, and the headers' values unless they are the step), dropped (how many records were skipped as late, without a
     * key and the like), stores (the final content), and error if something was thrown, after what was written until then.
     */
    static ObjectNode answer(Scenario s, Path state) {
        ObjectNode failed = JSON.createObjectNode().put("id", s.id);
        try {
            Run run = new Run(s, state);
            try {
                return run.all(s);
            } finally {
                run.driver.close();
            }
        } catch (Exception e) {
            return failed.put("error", describe(e));
        }
    }

    private Run(Scenario s, Path state) {
        Properties p = properties(s, state);
        StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(p)));
        graph = new Graph(builder, s.diff);
        Skipped.begin();
        Streams streams = new Streams(graph);
        Tables tables = new Tables(graph);
        Windows windows = new Windows(graph);
        for (Scenario.Op op : s.ops) {
            if (!streams.build(op) && !tables.build(op) && !windows.build(op)) {
                throw new IllegalArgumentException("there is no operator " + op.op);
            }
        }
        driver = new TopologyTestDriver(builder.build(p), p, Instant.ofEpochMilli(0));
        graph.inputs.forEach((topic, serde) ->
            inputs.put(topic, driver.createInputTopic(topic, serde.serializer(), serde.serializer())));
        graph.outputs.forEach((topic, handle) ->
            outputs.put(topic, driver.createOutputTopic(topic, Graph.STRING.deserializer(), values(handle))));
    }

    private static Deserializer<Object> values(Graph.Handle handle) {
        return handle.values().deserializer();
    }

    private static Properties properties(Scenario s, Path state) {
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "oracle");
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        p.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        p.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        p.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Marked.class);
        if (!s.stores.equals("rocks")) {
            p.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        }
        // By default a wall clock decides how often unmatched join rows and closed windows are looked for.
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        return p;
    }

    private ObjectNode all(Scenario s) {
        answer.put("id", s.id);
        answer.set("out", out);
        try {
            for (int i = 0; i < s.in.size(); i++) {
                step(i, s.in.get(i));
                drain(i);
            }
        } catch (Exception e) {
            return answer.put("error", describe(e));
        }
        answer.put("dropped", dropped());
        Contents contents = new Contents(driver, keys, times);
        ObjectNode stores = answer.putObject("stores");
        graph.stores.forEach((name, stored) -> stores.set(name, contents.of(stored.name(), stored)));
        return answer;
    }

    /** step feeds a record, with its number as a header. */
    private void step(int number, List<JsonNode> step) {
        String topic = step.get(0).asText();
        if (topic.equals("@")) {
            driver.advanceWallClockTime(Duration.ofMillis(step.get(1).asLong()));
            return;
        }
        String key = text(step.get(1));
        if (key != null) {
            keys.add(key);
        }
        times.add(step.get(3).asLong());
        RecordHeaders headers = new RecordHeaders();
        headers.add(HEADER, Integer.toString(number).getBytes(StandardCharsets.UTF_8));
        inputs.get(topic).pipeInput(new TestRecord<>(key, text(step.get(2)), headers, step.get(3).asLong()));
    }

    private static String text(JsonNode n) {
        return n.isNull() ? null : n.asText();
    }

    private void drain(int step) {
        outputs.forEach((name, topic) -> {
            while (!topic.isEmpty()) {
                TestRecord<Object, Object> r = topic.readRecord();
                ArrayNode row = out.addArray().add(step).add(name).add(text(r.key())).add(text(r.value())).add(r.timestamp());
                String from = numbers(r.headers());
                if (!from.equals(Integer.toString(step))) {
                    row.add(from);
                }
            }
        });
    }

    private static String numbers(Headers headers) {
        StringJoiner all = new StringJoiner(",");
        headers.forEach(h -> all.add(new String(h.value(), StandardCharsets.UTF_8)));
        return all.toString();
    }

    private static String text(Object o) {
        return o == null ? null : o.toString();
    }

    private long dropped() {
        return counted() - (graph.diff.contains("ignored-records") ? Skipped.count() : 0);
    }

    private long counted() {
        return driver.metrics().entrySet().stream()
            .filter(e -> e.getKey().name().equals("dropped-records-total"))
            .mapToLong(e -> ((Double) e.getValue().metricValue()).longValue())
            .sum();
    }

    private static String describe(Throwable e) {
        StringBuilder b = new StringBuilder();
        for (Throwable t = e; t != null; t = t.getCause()) {
            b.append(b.length() > 0 ? ": " : "").append(t.getClass().getSimpleName()).append(' ').append(t.getMessage());
        }
        return b.toString();
    }
}
