package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/millrace-streams/millrace/oracle/scenario"
)

// KafkaStreams is the Java program that answers scenarios by running them on Kafka Streams. It is not safe for concurrent use.
type KafkaStreams struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartKafkaStreams builds the program in dir, the folder oracle/java, if need be, and starts it. That takes some seconds, and
// minutes the first time, when Maven fetches the jars.
func StartKafkaStreams(dir string) (*KafkaStreams, error) {
	build := exec.Command("./build.sh")
	build.Dir, build.Stderr = dir, os.Stderr
	classes, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("oracle: build %s: %w", dir, err)
	}
	args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-cp", strings.TrimSpace(string(classes)), "millrace.oracle.Oracle"}
	// Versioned stores are on disk in any case. In memory they open eight times as fast.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		args = append(args, "/dev/shm")
	}
	cmd := exec.Command("java", args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	return &KafkaStreams{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<16)}, nil
}

// Ask sends a scenario.
func (k *KafkaStreams) Ask(s scenario.Scenario) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if _, err := k.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// Answer waits for the answer to the oldest scenario that has none yet.
func (k *KafkaStreams) Answer() (a scenario.Answer, err error) {
	line, err := k.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("oracle: the Java program: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("oracle: answer %s: %w", line, err)
	}
	return a, nil
}

// AskOne asks and waits.
func (k *KafkaStreams) AskOne(s scenario.Scenario) (scenario.Answer, error) {
	if err := k.Ask(s); err != nil {
		return scenario.Answer{}, err
	}
	return k.Answer()
}

// Close ends the program.
func (k *KafkaStreams) Close() error {
	return errors.Join(k.in.Close(), k.cmd.Wait())
}
