package millrace.bench;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Does a job of the benchmark with Kafka Streams. The arguments are the job, as name=value; what begins with "streams." is a
 * setting of Kafka Streams. It says on standard output how far it is, see Events, and ends in order when its standard input does.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Events events = new Events(out);
        Map<String, String> job = new HashMap<>();
        Properties settings = defaults();
        for (String arg : args) {
            String[] pair = arg.split("=", 2);
            if (pair[0].startsWith("streams.")) {
                settings.put(pair[0].substring("streams.".length()), pair[1]);
            } else {
                job.put(pair[0], pair[1]);
            }
        }

        CountDownLatch ended = new CountDownLatch(1);
        AtomicBoolean failed = new AtomicBoolean();
        try (KafkaStreams streams = new KafkaStreams(Topologies.of(job), settings)) {
            streams.setGlobalStateRestoreListener(events);
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    events.running();
                }
            });
            streams.setUncaughtExceptionHandler(e -> {
                e.printStackTrace();
                failed.set(true);
                ended.countDown();
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            Thread reader = new Thread(() -> {
                try {
                    while (System.in.read() >= 0) {}
                } catch (java.io.IOException e) {
                    e.printStackTrace();
                }
                ended.countDown();
            });
            reader.setDaemon(true);
            reader.start();
            ended.await();
        }
        System.exit(failed.get() ? 1 : 0);
    }

    /** What every job has in common. The interceptor only looks. */
    private static Properties defaults() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.mainConsumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.mainConsumerPrefix("interceptor.classes"), Events.First.class.getName());
        return settings;
    }
}
