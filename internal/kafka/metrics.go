package kafka

import "github.com/rcrowley/go-metrics"

// nowhere is a metrics registry that keeps nothing: sarama's meters would start a ticker that never ends, and its
// histograms cost time on every request. A user who wants them sets MetricRegistry in Configure.
type nowhere struct{}

// GetOrRegister returns a metric of the asked kind that drops what it is told.
func (nowhere) GetOrRegister(_ string, metric any) any {
	switch metric.(type) {
	case func() metrics.Meter, metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram, metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter, metrics.Counter:
		return metrics.NilCounter{}
	}
	return metric
}

// The rest of metrics.Registry: there is nothing to find and nothing to remove.

func (nowhere) Each(func(string, any))            {}
func (nowhere) Get(string) any                    { return nil }
func (nowhere) GetAll() map[string]map[string]any { return nil }
func (nowhere) Register(string, any) error        { return nil }
func (nowhere) RunHealthchecks()                  {}
func (nowhere) Unregister(string)                 {}
func (nowhere) UnregisterAll()                    {}
