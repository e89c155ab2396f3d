package processor

import (
	"encoding/base64"
	"testing"
)

func TestPartitionTimeInMetadata(t *testing.T) {
	// Bytes as org.apache.kafka.streams.processor.internals.TopicPartitionMetadata lays them out.
	want := base64.StdEncoding.EncodeToString([]byte{2, 0, 0, 1, 0x9c, 0, 0, 0, 7, 0, 0, 0, 0})
	if got := EncodePartitionTime(0x19c00000007); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for _, ts := range []int64{Unknown, 0, 1, 1 << 50} {
		if got := DecodePartitionTime(EncodePartitionTime(ts)); got != ts {
			t.Errorf("%d came back as %d", ts, got)
		}
	}
	old := base64.StdEncoding.EncodeToString([]byte{1, 0, 0, 0, 0, 0, 0, 0, 9})
	for metadata, want := range map[string]int64{old: 9, "": Unknown, "!": Unknown, "AgA=": Unknown, "CQAAAAAAAAAAAA==": Unknown} {
		if got := DecodePartitionTime(metadata); got != want {
			t.Errorf("%q: got %d, want %d", metadata, got, want)
		}
	}
}
