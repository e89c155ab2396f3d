package work

import (
	"fmt"
	"strconv"
	"time"
)

// Kind is what an application does with its input.
type Kind string

// The kinds.
const (
	Count   Kind = "count"   // count the records of each key
	Words   Kind = "words"   // split lines into words, count the words through a repartition topic
	Windows Kind = "windows" // count the records of each key and minute
	Join    Kind = "join"    // join each record with the row of its key
)

// Measure is what is measured of a workload.
type Measure string

// The measures.
const (
	Throughput Measure = "throughput" // records per second, from the first fetch to the last commit
	Restore    Measure = "restore"    // records per second of a changelog into a wiped store
	Latency    Measure = "latency"    // from the moment a record is due to be sent until a reader has the committed output
	Restart    Measure = "restart"    // from kill -9 to committed outputs of the process that is started again at once
	Takeover   Measure = "takeover"   // from kill -9 of one of two processes to committed outputs of all partitions
	Rolling    Measure = "rolling"    // the longest silence of a partition while three processes are restarted in order
)

// Recovery tells whether something is stopped or killed.
func (m Measure) Recovery() bool { return m == Restart || m == Takeover || m == Rolling }

// Guarantee is the processing guarantee, in the words of Kafka Streams.
type Guarantee string

// The guarantees.
const (
	ExactlyOnce Guarantee = "exactly_once_v2"
	AtLeastOnce Guarantee = "at_least_once"
)

// Workload is some work and its input. It is handed to child processes as JSON.
type Workload struct {
	Name       string // for flags
	Title      string
	Kind       Kind
	Measure    Measure
	Guarantee  Guarantee
	Topic      string  // the input
	Table      string  // the topic of rows that Join reads; "" for none
	Records    int     // of the input, of the changelog for Restore
	Distinct   int     // keys or words to draw from; all of them for the measures of recovery
	Zipf       float64 // exponent of Zipf's law, by which they are drawn; 0: evenly
	Value      int     // bytes of a record's value
	Partitions int     // of every topic

	Rate     int           // records per second that are sent while the application runs
	Duration time.Duration // for which they are sent
}

// What all workloads have in common.
const (
	WordsPerLine = 5
	Window       = time.Minute
	Grace        = time.Minute
	Disorder     = 5 * time.Second // between the records of a partition, at most
	Span         = 20 * time.Minute
)

// Names of what an application makes. Kafka Streams and Millrace make the same topics of them.
const (
	Store       = "counts"
	Repartition = "by-word"
)

// Size scales the workloads: 1 is the size of the figures that are published.
type Size float64

func (s Size) of(n int) int { return max(1, int(float64(s)*float64(n))) }

func (s Size) duration(d time.Duration) time.Duration {
	return max(3*time.Second, min(d, time.Duration(float64(s)*float64(d))))
}

// All returns every workload, in the order in which they run.
func All(s Size) []Workload {
	all := []Workload{
		s.count("count-1k", 1_000, 2_000_000, 100, ExactlyOnce),
		s.count("count-100k", 100_000, 2_000_000, 100, ExactlyOnce),
		s.count("count-1m", 1_000_000, 2_000_000, 100, ExactlyOnce),
		s.spread("count-1k-64p", 64),
		s.count("count-1k-kib", 1_000, 1_000_000, 1024, ExactlyOnce),
		s.count("count-1k-alo", 1_000, 2_000_000, 100, AtLeastOnce),
		s.count("count-100k-alo", 100_000, 2_000_000, 100, AtLeastOnce),
		s.count("count-1m-alo", 1_000_000, 2_000_000, 100, AtLeastOnce),
		s.words("words", ExactlyOnce),
		s.zipf(s.words("words-zipf", ExactlyOnce)),
		s.words("words-alo", AtLeastOnce),
		s.windows(), s.join(), s.restore(),
		s.latency("latency-1k", 1_000), s.latency("latency-20k", 20_000),
		s.recovery("restart", Restart, "kill -9, started again at once", 1_000_000),
		s.recovery("takeover", Takeover, "kill -9 of one of two processes", 1_000_000),
		s.recovery("rolling", Rolling, "three processes, restarted in order", 100_000),
	}
	for i := range all {
		if all[i].Partitions == 0 {
			all[i].Partitions = 4
		}
	}
	return all
}

func (s Size) count(name string, keys, records, value int, g Guarantee) Workload {
	w := Workload{Name: name, Kind: Count, Measure: Throughput, Guarantee: g, Records: s.of(records), Distinct: keys, Value: value}
	w.Topic = fmt.Sprintf("bench-keyed-%d-%d-%d", keys, w.Records, value)
	w.Title = fmt.Sprintf("count per key, %s keys, values of %d bytes, %s", Thousands(keys), value, g.words())
	return w
}

// spread is the first workload on more partitions.
func (s Size) spread(name string, partitions int) Workload {
	w := s.count(name, 1_000, 2_000_000, 100, ExactlyOnce)
	w.Partitions = partitions
	w.Topic = fmt.Sprintf("%s-%d", w.Topic, partitions)
	w.Title += fmt.Sprintf(", %d partitions", partitions)
	return w
}

func (s Size) words(name string, g Guarantee) Workload {
	w := Workload{Name: name, Kind: Words, Measure: Throughput, Guarantee: g, Records: s.of(1_000_000), Distinct: 100_000}
	w.Topic = fmt.Sprintf("bench-lines-%d", w.Records)
	w.Title = fmt.Sprintf("word count through a repartition topic, lines of %d words of %s, %s", WordsPerLine, Thousands(w.Distinct), g.words())
	return w
}

// zipf draws words as they are in texts: few of them often, most of them hardly ever.
func (s Size) zipf(w Workload) Workload {
	w.Zipf = 1.05
	w.Topic = fmt.Sprintf("bench-lines-zipf-%d", w.Records)
	w.Title += fmt.Sprintf(", by Zipf's law with exponent %v", w.Zipf)
	return w
}

func (s Size) windows() Workload {
	w := Workload{Name: "windows", Kind: Windows, Measure: Throughput, Guarantee: ExactlyOnce, Records: s.of(2_000_000), Distinct: 10_000, Value: 100}
	w.Topic = fmt.Sprintf("bench-timed-%d-%d", w.Distinct, w.Records)
	w.Title = fmt.Sprintf("count in tumbling windows, %s keys, %d windows, exactly once", Thousands(w.Distinct), Span/Window)
	return w
}

func (s Size) join() Workload {
	w := Workload{Name: "join", Kind: Join, Measure: Throughput, Guarantee: ExactlyOnce, Records: s.of(2_000_000), Distinct: s.of(100_000), Value: 100}
	w.Topic = fmt.Sprintf("bench-join-%d-%d", w.Distinct, w.Records)
	w.Table = fmt.Sprintf("bench-rows-%d", w.Distinct)
	w.Title = fmt.Sprintf("stream-table join, %s rows, exactly once", Thousands(w.Distinct))
	return w
}

func (s Size) restore() Workload {
	w := Workload{Name: "restore", Kind: Count, Measure: Restore, Guarantee: ExactlyOnce, Records: s.of(2_000_000), Distinct: s.of(1_000_000)}
	w.Title = fmt.Sprintf("restore of a wiped store, %s keys", Thousands(w.Distinct))
	return w
}

func (s Size) latency(name string, rate int) Workload {
	w := Workload{Name: name, Kind: Count, Measure: Latency, Guarantee: ExactlyOnce, Distinct: 100_000, Rate: rate, Duration: s.duration(20 * time.Second)}
	w.Title = fmt.Sprintf("latency at %s records/s, counted and read back, exactly once", Thousands(rate))
	return w
}

func (s Size) recovery(name string, m Measure, title string, keys int) Workload {
	w := Workload{Name: name, Kind: Count, Measure: m, Guarantee: ExactlyOnce, Distinct: s.of(keys), Rate: 2_000}
	w.Title = fmt.Sprintf("%s, %s keys, %s records/s", title, Thousands(w.Distinct), Thousands(w.Rate))
	return w
}

func (g Guarantee) words() string {
	if g == ExactlyOnce {
		return "exactly once"
	}
	return "at least once"
}

// Thousands writes 1234567 as 1,234,567.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
