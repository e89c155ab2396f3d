package example_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/examples/internal/exampletest"
	"github.com/millrace-streams/millrace/internal/brokertest"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

// child makes the test binary the example itself.
const child = "MILLRACE_EXAMPLE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		example.Main("double", parse, run)
		os.Exit(0)
	}
	brokertest.Main(m)
}

// options are those of an example that doubles numbers.
type options struct {
	example.SceneOptions
	in, out, bad string
	numbers      int
}

func parse(args []string) (o options, err error) {
	f := o.Flags("double", "About.", "nothing", 2)
	f.StringVar(&o.in, "in", "in", "input `topic`")
	f.StringVar(&o.out, "out", "out", "output `topic`")
	f.StringVar(&o.bad, "bad", "", "a value that is no number, sent first")
	f.IntVar(&o.numbers, "numbers", 2, "how many")
	err = example.Parse(f, args)
	return o, err
}

func run(ctx context.Context, o options, stdout io.Writer) error {
	in, out := topology.NewTopic(o.in, serde.String, serde.Int64), topology.NewTopic(o.out, serde.String, serde.Int64)
	b := topology.NewBuilder()
	topology.To(topology.MapValues(topology.From(b, in), func(n int64) int64 { return 2 * n }), out)
	topo, err := b.Build()
	if err != nil {
		return err
	}
	scene := example.Scene{
		About: "About.", Topology: topo,
		Sample: func(context.Context, *example.Home) (all []example.Input, err error) {
			if o.bad != "" {
				all = append(all, example.Value(topology.NewTopic(o.in, serde.String, serde.String), "k", o.bad, "bad", ""))
			}
			for n := range int64(o.numbers) {
				all = append(all, example.Value(in, "k", n, fmt.Sprint(n), ""))
			}
			return append(all, example.Delete(in, "k", "end", "a tombstone")), nil
		},
		Outputs: []example.Output{example.Show(out, func(r processor.Record[string, int64]) string {
			return fmt.Sprintf("%s=%d null:%v", r.Key, r.Value, r.NullValue)
		})},
	}
	return scene.Play(ctx, o.SceneOptions, stdout)
}

func TestScene(t *testing.T) {
	t.Parallel()
	want := `About.

reads:  in
writes: out

0
       => out  k=0 null:false
1
       => out  k=2 null:false
end                           (a tombstone)
       => out  k=0 null:true

3 records in, 3 records out to out
`
	if got := exampletest.Run(t, parse, run, "-store", "memory"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What stops the application stops the example, which says why.
func TestBadInput(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-bad", "no number"})
	if err != nil {
		t.Fatal(err)
	}
	var failed *processor.RecordError
	if err := run(t.Context(), o, io.Discard); !errors.As(err, &failed) || failed.Topic != "in" {
		t.Errorf("got %v", err)
	}
}

// start starts the example as a program. Its temporary files go to dir.
func start(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+dir)
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		timeout.Stop()
		_ = cmd.Process.Kill() // of no effect if it has ended
	})
	return cmd, bufio.NewReader(pipe), stderr
}

// waitFor reads up to a line with the text.
func waitFor(t *testing.T, out *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("no %q: %v", text, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-help", 0, "About.\n\nUsage of double:"},
		{"-no-such-flag", 2, "not defined"},
		{"surplus", 2, `unexpected argument "surplus"`},
		{"-partitions 0", 1, "double: -partitions 0"},
		{"-store paper", 1, `double: -store "paper"`},
		{"-brokers 127.0.0.1:1", 1, "double: connect to [127.0.0.1:1]"},
	} {
		dir := t.TempDir()
		cmd, out, stderr := start(t, dir, strings.Fields(c.args)...)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // the exit code says it
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: exit code %d, want %d, with %q in:\n%s", c.args, code, c.code, c.stderr, stderr)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", c.args, left, err)
		}
	}
}

// An interrupt before the end of the sample is an error; nothing is left behind.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out, stderr := start(t, dir, "-numbers", "20000")
	waitFor(t, out, "=> out")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), "double: context canceled") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Without the sample, what others write is shown until an interrupt, which is the end that was wanted.
func TestLive(t *testing.T) {
	t.Parallel()
	brokers, in := brokertest.Brokers(t), brokertest.Topic(t, "in", 2)
	brokertest.Produce(t, brokers, in, brokertest.KV("k", "\x00\x00\x00\x00\x00\x00\x00\x07"))
	cmd, out, stderr := start(t, t.TempDir(), "-sample=false", "-brokers", strings.Join(brokers, ","), "-app", brokertest.UniqueName(t, "app"),
		"-in", in, "-out", brokertest.UniqueName(t, "out"))
	waitFor(t, out, "k=14 null:false")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("%v; then on standard output %q, on standard error:\n%s", err, rest, stderr)
	}
}

// A further run is a day later.
func TestNextDay(t *testing.T) {
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := example.Open(o.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Topics(2, "times"); err != nil {
		t.Fatal(err)
	}
	times := topology.NewTopic("times", serde.String, serde.JSON[time.Time]())
	at := func(at time.Time) time.Time { return at }
	for _, after := range []time.Duration{0, 24*time.Hour - 1, 24 * time.Hour, 0} {
		record := processor.Record[string, time.Time]{Key: after.String(), Value: example.FirstDay.Add(after)}
		if err := example.Send(t.Context(), h, times, record); err != nil {
			t.Fatal(err)
		}
		days := int(after/(24*time.Hour)) + 1
		if after == 0 {
			continue
		}
		if day, err := example.NextDay(t.Context(), h, times, at); err != nil || !day.Equal(example.FirstDay.AddDate(0, 0, days)) {
			t.Errorf("behind %v: %v, %v", after, day, err)
		}
	}
}
