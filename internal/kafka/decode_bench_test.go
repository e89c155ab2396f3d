package kafka

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
)

// BenchmarkDecode takes apart a response of 10 batches with 1,000 records each, and gives the slices back.
func BenchmarkDecode(b *testing.B) {
	response := &sarama.FetchResponseBlock{}
	for i := range 10 {
		batch := batchOf(int64(i*1000), 1000, -1)
		for n, r := range batch.Records {
			r.Key, r.Value = fmt.Appendf(nil, "key-%d", n), make([]byte, 100)
		}
		response.RecordsSet = append(response.RecordsSet, &sarama.Records{RecordBatch: batch})
	}
	free := new(spares)
	b.ReportAllocs()
	for b.Loop() {
		r, err := decode(response, 0, free)
		if err != nil {
			b.Fatal(err)
		}
		free.give(r.records)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/record")
}
