package main

import (
	"flag"
	"fmt"
	"io"
	"path"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace-streams/millrace/bench/internal/contender"
	"github.com/millrace-streams/millrace/bench/internal/work"
)

// options are what the command line asks for.
type options struct {
	brokers    []string
	brokerDir  string
	list       bool
	workloads  []work.Workload
	contenders []contender.Contender
	scale      float64
	runs       int
	slow       time.Duration
	threads    int
	interval   time.Duration
	warmUp     time.Duration
	json       string
	html       string
	profiles   string
	peer       string // the folder of the Java program
	java       []string
}

func parse(args []string) (options, error) {
	o := options{peer: "bench/peer"}
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.Usage = func() { usage(f) }
	recovery := len(args) > 0 && args[0] == "recovery"
	if recovery {
		args = args[1:]
	}
	brokers := f.String("brokers", "", "`host:port` of brokers, comma-separated; without, one is started by scripts/kafka/broker.sh")
	workloads := f.String("workload", "", "`names` of workloads, comma-separated, as count-* for several")
	contenders := f.String("contender", "", "`names` of contenders, likewise")
	quick := f.Bool("quick", false, "a tenth of the work, once: whether everything runs, no figures to quote")
	f.BoolVar(&o.list, "list", false, "list workloads and contenders")
	f.StringVar(&o.brokerDir, "broker-dir", "", "`folder` of the broker that is started; it stays, so that inputs are loaded once (default in the temporary folder)")
	f.Float64Var(&o.scale, "scale", 1, "`part` of the work: records, and keys of restores")
	f.IntVar(&o.runs, "runs", 3, "runs of each contender")
	f.DurationVar(&o.slow, "slow", 20*time.Second, "whose runs take longer has two of them")
	f.IntVar(&o.threads, "threads", 2, "workers of Millrace, stream threads of Kafka Streams")
	f.DurationVar(&o.interval, "commit-interval", 100*time.Millisecond, "time between commits")
	f.DurationVar(&o.warmUp, "warm-up", time.Minute, "time for which a broker that is started works before anything is measured")
	java := f.String("java", "-Xmx1g", "`options` of the JVM that runs Kafka Streams, comma-separated")
	f.StringVar(&o.json, "json", "", "`file` for all figures as JSON")
	f.StringVar(&o.html, "html", "", "`file` for a page with charts")
	f.StringVar(&o.profiles, "profile", "", "`folder` for profiles of CPU and allocations of each run in Go")
	_ = f.Parse(args) // it exits on errors

	if *quick {
		o.scale, o.runs, o.warmUp = 0.1, 1, 0
	}
	if f.NArg() > 0 || o.runs < 1 || o.scale <= 0 || o.threads < 1 || o.interval < time.Millisecond {
		return o, fmt.Errorf("bad arguments: see -help")
	}
	o.brokers, o.java = list(*brokers), list(*java)
	return o, o.pick(recovery, list(*workloads), list(*contenders))
}

// pick chooses workloads and contenders by the patterns of their names, all of them if there are none.
func (o *options) pick(recovery bool, workloads, contenders []string) error {
	used := map[string]bool{}
	for _, w := range work.All(work.Size(o.scale)) {
		if len(workloads) == 0 && w.Measure.Recovery() == recovery || matches(workloads, w.Name, used) {
			o.workloads = append(o.workloads, w)
		}
	}
	for _, c := range contender.All {
		if len(contenders) == 0 || matches(contenders, c.Name, used) {
			o.contenders = append(o.contenders, c)
		}
	}
	for _, p := range append(workloads, contenders...) {
		if !used[p] {
			return fmt.Errorf("there is nothing by the name %q: see -list", p)
		}
	}
	return nil
}

func matches(patterns []string, name string, used map[string]bool) bool {
	found := false
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			found, used[p] = true, true
		}
	}
	return found
}

// list splits at commas; nothing is an empty list.
func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func usage(f *flag.FlagSet) {
	fmt.Fprint(f.Output(), `usage: go run ./bench [flags]             throughput, restore and latency
       go run ./bench recovery [flags]    kills and restarts
       go run ./bench model [flags]       what a cluster costs, calculated and simulated

`)
	f.PrintDefaults()
}

// print lists what can be run.
func (o options) print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Workloads")
	for _, w := range o.workloads {
		fmt.Fprintf(t, "  %s\t%s\n", w.Name, w.Title)
	}
	fmt.Fprintln(t, "Contenders")
	for _, c := range o.contenders {
		fmt.Fprintf(t, "  %s\t%s\n", c.Name, c.About)
	}
	_ = t.Flush()
}
