package millrace.oracle;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One scenario: operators, each naming what it reads, and the steps that are fed to them. A step is
 * [topic, key, value, timestamp] with null for a null key or value, or ["@", milliseconds] to advance the wall clock.
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final class Scenario {
    public String id = "";
    /** Names of the differences, of docs/DIFFERENCES.md, that the topology is built to imitate. */
    public Set<String> diff = Set.of();
    /** "rocks" for RocksDB stores; in memory otherwise. */
    public String stores = "";
    public List<Op> ops = List.of();
    public List<List<JsonNode>> in = List.of();

    /** One operator. Which fields it needs depends on op; times are in milliseconds. */
    @JsonIgnoreProperties(ignoreUnknown = true)
    static final class Op {
        public String id = "";
        public String op = "";
        public List<String> from = List.of();
        public String fn = "";
        public String key = "";
        public List<String> branches = List.of();
        /** "close" to emit a window's result only when it closes. */
        public String emit = "";
        /** Of suppress: "close" or "time". */
        public String until = "";
        /** Whether an optional store is wanted. */
        public boolean store;
        /** The numbers: size, advance, grace, before, after, history, retention, limit, records. */
        public Map<String, Long> n = Map.of();

        boolean has(String name) {
            return n.containsKey(name);
        }

        long n(String name) {
            Long value = n.get(name);
            if (value == null) {
                throw new IllegalArgumentException(id + " needs " + name);
            }
            return value;
        }

        Duration ms(String name) {
            return Duration.ofMillis(n(name));
        }
    }
}
