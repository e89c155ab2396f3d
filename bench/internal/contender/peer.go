package contender

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-streams/millrace/bench/internal/work"
)

// Peer is the Java program that runs Kafka Streams.
type Peer struct {
	classes string
	version string
	options []string // of java
}

// BuildPeer builds the program in the folder bench/peer, if need be; the first time Maven fetches the jars. The error says what is missing.
func BuildPeer(ctx context.Context, folder string, options []string) (*Peer, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "build.sh"))
	cmd.Stderr = os.Stderr
	classes, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the peer cannot be run: %s: %w", cmd.Path, err)
	}
	p := &Peer{classes: strings.TrimSpace(string(classes)), options: options}
	for _, entry := range strings.Split(p.classes, ":") {
		jars, _ := filepath.Glob(filepath.Join(filepath.Dir(entry), "kafka-streams-*.jar"))
		for _, jar := range jars {
			p.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jar), "kafka-streams-"), ".jar")
		}
	}
	return p, nil
}

// Version is that of Kafka Streams.
func (p *Peer) Version() string { return p.version }

// Command returns the process of a job.
func (p *Peer) Command(ctx context.Context, c Contender, j Job) *exec.Cmd {
	level := "error"
	if j.Workload.Measure.Recovery() { // it has much to say about being killed
		level = "off"
	}
	args := append(slices.Clone(p.options),
		"-cp", p.classes, "-Dorg.slf4j.simpleLogger.defaultLogLevel="+level, "millrace.bench.Peer",
		"kind="+string(j.Workload.Kind), "in="+j.Workload.Topic, "table="+j.Workload.Table, "out="+j.Out,
		"store="+work.Store, "repartition="+work.Repartition,
		"window="+ms(work.Window.Milliseconds()), "grace="+ms(work.Grace.Milliseconds()),
		"streams.application.id="+j.App,
		"streams.bootstrap.servers="+strings.Join(j.Brokers, ","),
		"streams.processing.guarantee="+string(j.Workload.Guarantee),
		"streams.num.stream.threads="+strconv.Itoa(j.Threads),
		"streams.commit.interval.ms="+ms(j.Interval.Milliseconds()),
		"streams.state.dir="+j.Dir,
	)
	if c.settings != nil {
		for _, s := range c.settings(j) {
			args = append(args, "streams."+s)
		}
	}
	return exec.CommandContext(ctx, "java", args...)
}

func ms(n int64) string { return strconv.FormatInt(n, 10) }

func cacheOff(Job) []string { return []string{"statestore.cache.max.bytes=0"} }

// tuned is what somebody would set who wants a fast recovery.
func tuned(j Job) []string {
	return []string{
		"main.consumer.group.instance.id=" + j.Instance,
		"main.consumer.session.timeout.ms=10000",
		"producer.transaction.timeout.ms=10000",
		"num.standby.replicas=" + strconv.Itoa(j.Standbys),
		"enable.transactional.statestores=true",
	}
}
