package millrace.bench;

import java.io.PrintStream;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Says on standard output, a line each: "running" once, when the first records have been read or all tasks run, whichever is
 * first; "restoring PARTITION" and "restored PARTITION RECORDS" of each changelog partition.
 */
final class Events implements StateRestoreListener {
    private static Events only;
    private final PrintStream out;
    private boolean said;

    Events(PrintStream out) {
        this.out = out;
        only = this;
    }

    synchronized void running() {
        if (!said) {
            said = true;
            out.println("running");
        }
    }

    @Override
    public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
        out.println("restoring " + partition);
    }

    @Override
    public void onBatchRestored(TopicPartition partition, String store, long to, long records) {}

    @Override
    public void onRestoreEnd(TopicPartition partition, String store, long records) {
        out.println("restored " + partition + " " + records);
    }

    /** Notices the first records. */
    public static final class First implements ConsumerInterceptor<byte[], byte[]> {
        private boolean seen;

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
            if (!seen && !records.isEmpty()) {
                seen = true;
                only.running();
            }
            return records;
        }

        @Override
        public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

        @Override
        public void close() {}

        @Override
        public void configure(Map<String, ?> settings) {}
    }
}
