package millrace.bench;

import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The workloads. Their names, those of topics and stores and the sizes of windows come with the job. */
final class Topologies {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> NUMBER = Serdes.Long();

    private Topologies() {}

    static Topology of(Map<String, String> job) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> in = builder.stream(job.get("in"), Consumed.with(TEXT, TEXT));
        switch (job.get("kind")) {
            case "count" -> count(in.groupByKey(Grouped.with(TEXT, TEXT)), job);
            case "words" -> count(
                in.flatMapValues(line -> Arrays.asList(line.split(" ")))
                    .groupBy((key, word) -> word, Grouped.with(job.get("repartition"), TEXT, TEXT)),
                job);
            case "windows" -> windows(in, job);
            case "join" -> join(builder, in, job);
            default -> throw new IllegalArgumentException("no workload " + job.get("kind"));
        }
        return builder.build();
    }

    private static void count(KGroupedStream<String, String> grouped, Map<String, String> job) {
        grouped.count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(job.get("store")).withKeySerde(TEXT).withValueSerde(NUMBER))
            .toStream()
            .to(job.get("out"), Produced.with(TEXT, NUMBER));
    }

    private static void windows(KStream<String, String> in, Map<String, String> job) {
        Duration size = Duration.ofMillis(Long.parseLong(job.get("window")));
        Duration grace = Duration.ofMillis(Long.parseLong(job.get("grace")));
        in.groupByKey(Grouped.with(TEXT, TEXT))
            .windowedBy(TimeWindows.ofSizeAndGrace(size, grace))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(job.get("store")).withKeySerde(TEXT).withValueSerde(NUMBER))
            .toStream()
            .to(job.get("out"), Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), NUMBER));
    }

    private static void join(StreamsBuilder builder, KStream<String, String> in, Map<String, String> job) {
        KTable<String, String> rows = builder.table(
            job.get("table"),
            Consumed.with(TEXT, TEXT),
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(job.get("store")).withKeySerde(TEXT).withValueSerde(TEXT));
        in.join(rows, (value, row) -> row + "|" + value, Joined.with(TEXT, TEXT, TEXT)).to(job.get("out"), Produced.with(TEXT, TEXT));
    }
}
