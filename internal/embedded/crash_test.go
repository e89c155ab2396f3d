package embedded_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/embedded"
	"github.com/millrace-streams/millrace/internal/seed"
)

// childDir is set in the process that TestKilledBroker kills.
const childDir = "MILLRACE_EMBEDDED_CHILD"

// child runs a broker and a writer on it until it is killed, and prints each transaction that was acknowledged.
func child(dir string) int {
	b, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	w, err := newWriter(b.Addrs())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	w.n, _ = strconv.Atoi(os.Getenv(childDir + "_NEXT"))
	for {
		n, commit := w.n, w.n%5 != 3
		if err := w.transaction(commit); err != nil {
			fmt.Println(err)
			return 1
		}
		if commit {
			fmt.Println("committed", n)
		}
	}
}

// A broker is killed again and again while an application commits: nothing that was acknowledged is lost, nothing is seen
// in part, and the application goes on.
func TestKilledBroker(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	createTopics(t, b.Addrs())
	stop(t, b)
	var seen []int
	for range 4 {
		next := 0
		if len(seen) > 0 {
			next = seen[len(seen)-1] + 1
		}
		acknowledged := runAndKill(t, dir, next, 20+random.IntN(60))
		b := start(t, embedded.Options{Dir: dir})
		if fresh, reason := b.Fresh(); fresh || !b.Repaired() {
			t.Fatalf("fresh %v (%s), repaired %v", fresh, reason, b.Repaired())
		}
		before := seen
		seen = state(t, b.Addrs())
		checkOrder(t, before, seen, acknowledged)
		goOn(t, b.Addrs(), seen)
		seen = append(seen, seen[len(seen)-1]+1)
		stop(t, b)
	}
}

// runAndKill starts the child and kills it once it has acknowledged so many transactions. It returns the last of them.
func runAndKill(t *testing.T, dir string, next, lines int) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s_NEXT=%d", childDir, next))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := -1
	scanner := bufio.NewScanner(out)
	for i := 0; scanner.Scan(); i++ {
		if i == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		text, ok := strings.CutPrefix(scanner.Text(), "committed ")
		if n, err := strconv.Atoi(text); ok && err == nil {
			last = n
		} else if ok || i < lines {
			t.Fatalf("child: %s", scanner.Text())
		}
	}
	_ = cmd.Wait() // says that it was killed
	return last
}

func checkOrder(t *testing.T, before, seen []int, acknowledged int) {
	t.Helper()
	if len(seen) < len(before) || !slices.Equal(seen[:len(before)], before) {
		t.Fatalf("what was there is not there any more: %v, then %v", before, seen)
	}
	if !slices.Contains(seen, acknowledged) {
		t.Errorf("transaction %d was acknowledged and is lost: %v", acknowledged, seen)
	}
	for i := 1; i < len(seen); i++ {
		if gap := seen[i] - seen[i-1]; gap != 1 && (gap != 2 || seen[i]%5 != 4) {
			t.Errorf("%d follows %d", seen[i], seen[i-1])
		}
	}
}

// The broker is killed after each single write of a commit, and in the middle of each. The commit has taken place when
// the last of the writes is whole, and else not at all.
func TestCommitCutAfterEveryWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	createTopics(t, b.Addrs())
	w, err := newWriter(b.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.transaction(true); err != nil {
		t.Fatal(err)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	before := readTree(t, dir)
	if err := w.producer.CommitTxn(); err != nil {
		t.Fatal(err)
	}
	after := readTree(t, dir)

	writes := commitWrites(t, before, after)
	if len(writes) != 8 {
		t.Fatalf("a commit takes the writes %v", writes)
	}
	for cut := range 2*len(writes) + 1 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			tree := map[string][]byte{}
			for name, data := range before {
				tree[name] = data
			}
			for name, data := range after {
				if strings.HasPrefix(name, "intent.") {
					tree[name] = data
				}
			}
			for _, name := range writes[:cut/2] {
				tree[name] = after[name]
			}
			if cut%2 == 1 {
				name := writes[cut/2]
				from, to := len(before[name]), len(after[name])
				tree[name] = after[name][:(from+to)/2]
			}
			want := []int{0}
			if cut == 2*len(writes) {
				want = append(want, 1)
			}
			checkTree(t, tree, want)
		})
	}
}

// commitWrites names the files that a commit has grown, in the order in which it writes.
func commitWrites(t *testing.T, before, after map[string][]byte) []string {
	t.Helper()
	var writes []string
	for name, data := range after {
		if strings.HasPrefix(name, "intent.") || bytes.Equal(data, before[name]) {
			continue
		}
		if !bytes.HasPrefix(data, before[name]) {
			t.Fatalf("%s is rewritten", name)
		}
		writes = append(writes, name)
	}
	rank := func(name string) string {
		switch {
		case strings.HasSuffix(name, "groups.log"):
			return "1"
		case strings.HasSuffix(name, "pids.log"):
			return "2"
		}
		return "0" + filepath.Dir(name) + filepath.Ext(name) // .dat, then .idx
	}
	slices.SortFunc(writes, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return writes
}

// checkTree starts a broker on the files of one that was killed.
func checkTree(t *testing.T, tree map[string][]byte, want []int) {
	t.Helper()
	dir := writeTree(t, tree)
	if err := embedded.MarkRunning(dir); err != nil {
		t.Fatal(err)
	}
	b := start(t, embedded.Options{Dir: dir})
	if fresh, reason := b.Fresh(); fresh || !b.Repaired() {
		t.Fatalf("fresh %v (%s), repaired %v", fresh, reason, b.Repaired())
	}
	got := state(t, b.Addrs())
	if !slices.Equal(got, want) {
		t.Errorf("committed: %v, want %v", got, want)
	}
	goOn(t, b.Addrs(), got)
	stop(t, b)
	if b := start(t, embedded.Options{Dir: dir}); b.Repaired() {
		t.Error("repaired after a clean end")
	}
}

// A client that outlives the broker must not commit what the repair has aborted.
func TestRepairFencesProducers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, embedded.Options{Dir: dir})
	createTopics(t, b.Addrs())
	w, err := newWriter(b.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.transaction(true); err != nil {
		t.Fatal(err)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	tree := readTree(t, dir)
	p := port(t, b)
	stop(t, b)
	killed := writeTree(t, tree)
	if err := embedded.MarkRunning(killed); err != nil {
		t.Fatal(err)
	}
	b = start(t, embedded.Options{Dir: killed, Port: p})
	if err := w.producer.CommitTxn(); err == nil {
		t.Error("the transaction was committed")
	}
	if got := state(t, b.Addrs()); !slices.Equal(got, []int{0}) {
		t.Errorf("committed: %v", got)
	}
}

func TestLogThatCannotBeTrustedIsMovedAside(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"another boot": embedded.MarkFromAnotherBoot,
		"another format": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "log", "meta.json"), []byte(`{"version":7}`), 0o644); err != nil {
				return err
			}
			return embedded.MarkRunning(dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := start(t, embedded.Options{Dir: dir})
			createTopics(t, b.Addrs())
			id := b.LogID()
			stop(t, b)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			b = start(t, embedded.Options{Dir: dir})
			fresh, reason := b.Fresh()
			if !fresh || b.Repaired() || b.LogID() == id || !strings.Contains(reason, "log.unclean") {
				t.Errorf("fresh %v (%s), repaired %v, log %s, was %s", fresh, reason, b.Repaired(), b.LogID(), id)
			}
			createTopics(t, b.Addrs())
			goOn(t, b.Addrs(), nil)
			stop(t, b)
			if fresh, _ := start(t, embedded.Options{Dir: dir}).Fresh(); fresh {
				t.Error("fresh once more")
			}
		})
	}
}

// readTree returns the files of a directory by their relative names, without lock and marker.
func readTree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	tree := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "lock" || e.Name() == "running" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			tree[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func writeTree(t *testing.T, tree map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
