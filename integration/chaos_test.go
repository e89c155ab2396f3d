//go:build chaos

package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/topology"
)

// needsReal skips a test on a broker that runs in this process: it would share the machine's cores with the test itself.
func needsReal(t *testing.T) {
	t.Helper()
	if brokertest.Kind(t) == brokertest.KindEmbedded {
		t.Skip("needs a real broker: set MILLRACE_BROKERS")
	}
}

// A process is killed ten times at random moments and started again at once. The counts are right.
func TestKill9(t *testing.T) {
	needsReal(t)
	for _, c := range []struct {
		name string
		spec spec
	}{
		{"bolt/exactly once", spec{}},
		{"memory/exactly once", spec{Memory: true}},
		{"bolt/at least once", spec{AtLeast: true}},
		{"memory/at least once", spec{Memory: true, AtLeast: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := seeded(t)
			c.spec.FlushInterval, c.spec.StagedBytes = 200*time.Millisecond, 256<<10 // many small commits
			write(rng, 200_000, 5_000).killed(t, c.spec, rng, 10)
		})
	}
}

// Two processes share four partitions; one is killed and does not come back; the other finishes the work.
func TestTwoProcessesTakeOver(t *testing.T) {
	needsReal(t)
	const partitions = 4
	rng := seeded(t)
	text := write(rng, 100_000, 5_000)
	s := spec{Kind: "wordcount", Brokers: brokertest.Brokers(t), App: brokertest.UniqueName(t, "words"), StateDir: t.TempDir(),
		In: brokertest.Topic(t, "lines", partitions), Out: brokertest.Topic(t, "counts", partitions),
		CommitInterval: 20 * time.Millisecond, StagedBytes: 256 << 10, SessionTimeout: 3 * time.Second, TransactionTimeout: 3 * time.Second}
	one := spawn(t, s)
	s.StateDir = t.TempDir()
	other := spawn(t, s)
	brokertest.Eventually(t, patience, func() (bool, string) {
		state, n := members(t, s.App)
		return n == 2 && state == "Stable", fmt.Sprintf("the group is %s with %d members", state, n)
	})
	brokertest.Produce(t, s.Brokers, s.In, text.part(0, 1, partitions)...)
	newProgress(t, s.Brokers, s.App, s.In, partitions).wait(rng.Int64N(text.steps()*3/4), other.alive)
	one.kill()
	waitCommitted(t, s.Brokers, s.App, wordCountTopics(s.App, s.In), other.alive)
	other.stop()
	text.check(t, s.Brokers, s.Out, true)
}

// The broker is stopped and started, and killed and started, while the application works.
func TestBrokerRestart(t *testing.T) {
	const partitions = 4
	rng := seeded(t)
	text := write(rng, 150_000, 5_000)
	broker := ownBroker(t)
	brokertest.CreateTopic(t, broker.addrs, "lines", partitions, nil)
	brokertest.CreateTopic(t, broker.addrs, "counts", partitions, nil)
	app := start(t, build(t, func(b *topology.Builder) { wordCount(b, "lines", "counts") }), millrace.Config{
		ApplicationID: "words", Brokers: broker.addrs, StateDir: t.TempDir(), CommitInterval: 20 * time.Millisecond, StagedBytes: 256 << 10,
	})
	for i, how := range []string{"stop", "kill"} {
		work := newProgress(t, broker.addrs, "words", "lines", partitions)
		goal := work.now() + rng.Int64N(text.steps()/4)
		brokertest.Produce(t, broker.addrs, "lines", text.part(i, 3, partitions)...)
		work.wait(goal, app.alive)
		t.Logf("%s when %d of %d steps are committed", how, work.now(), text.steps())
		broker.run(how)
		broker.run("start")
	}
	brokertest.Produce(t, broker.addrs, "lines", text.part(2, 3, partitions)...)
	app.drain()
	app.stop()
	text.check(t, broker.addrs, "counts", true)
}

// process is a broker that is controlled by the project's script.
type process struct {
	t                    *testing.T
	script, folder, port string
	addrs                []string
}

// ownBroker starts a broker of the test's own, with the script that MILLRACE_BROKER_CTL names, if it does.
func ownBroker(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, script: os.Getenv("MILLRACE_BROKER_CTL"), folder: t.TempDir(), port: freePort(t)}
	if p.script == "" {
		p.script = filepath.Join("..", "scripts", "kafka", "broker.sh")
	}
	p.addrs = []string{"127.0.0.1:" + p.port}
	p.run("start")
	t.Cleanup(func() { p.run("kill") })
	return p
}

// freePort finds a port whose successor is free too: the controller's.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		_ = first.Close()
		if err == nil {
			_ = second.Close()
			return fmt.Sprint(port)
		}
	}
	t.Fatal("no two free ports in a row")
	return ""
}

func (p *process) run(command string) {
	p.t.Helper()
	out, err := exec.Command("bash", p.script, command, p.folder, p.port).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", p.script, command, err, out)
	}
}
