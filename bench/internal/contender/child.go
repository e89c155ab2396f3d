package contender

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
)

// variable is the environment variable that makes this program do one job instead of the benchmark.
const variable = "MILLRACE_BENCH_JOB"

// Command returns this program as the process of a job.
func Command(ctx context.Context, j Job) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	return cmd, nil
}

// Child does the job that the environment names, if it does, and exits.
func Child() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	var j Job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = perform(j)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func perform(j Job) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // the end of the input is the order to stop
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	c, ok := Find(j.Contender)
	if !ok || c.run == nil {
		return fmt.Errorf("no contender %q in this program", j.Contender)
	}
	if j.Profile != "" {
		write, err := profile(j.Profile)
		if err != nil {
			return err
		}
		defer write()
	}
	say := &Voice{out: os.Stdout}
	context.AfterFunc(ctx, say.stopped)
	if err := c.run(ctx, j, say); err != nil {
		return err
	}
	<-ctx.Done()
	say.stopped()
	say.allocated()
	return nil
}

// profile starts a CPU profile; what it returns ends it and writes that of all allocations too.
func profile(prefix string) (func(), error) {
	f, err := os.Create(prefix + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(prefix + ".allocs"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		}
	}, nil
}

// Voice says how far a process is. It may be used from several goroutines.
type Voice struct {
	mu     sync.Mutex
	out    io.Writer
	ran    bool
	before uint64 // allocations until it ran
	after  uint64 // and until it was told to stop
}

// Running says that the first records are being fetched. It says so once.
func (v *Voice) Running() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ran {
		v.ran, v.before = true, mallocs()
		fmt.Fprintln(v.out, "running")
	}
}

// Say says something else.
func (v *Voice) Say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.out, format+"\n", args...)
}

func (v *Voice) stopped() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.after == 0 {
		v.after = mallocs()
	}
}

func (v *Voice) allocated() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ran {
		fmt.Fprintln(v.out, "allocated", v.after-v.before)
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
