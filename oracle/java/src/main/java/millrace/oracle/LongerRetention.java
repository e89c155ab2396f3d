package millrace.oracle;

import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** Stores in memory whose retention is a millisecond at least. */
public final class LongerRetention extends InMemoryDslStoreSuppliers {
    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams p) {
        java.time.Duration retention = p.retentionPeriod().toMillis() > 0 ? p.retentionPeriod() : java.time.Duration.ofMillis(1);
        return super.windowStore(new DslWindowParams(
            p.name(), retention, p.windowSize(), p.retainDuplicates(), p.emitStrategy(), p.isSlidingWindow(), p.isTimestamped()));
    }
}
