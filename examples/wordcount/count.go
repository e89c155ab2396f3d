package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace-streams/millrace"
	"github.com/millrace-streams/millrace/internal/topicread"
)

// countFile runs the application until the file's lines are counted, and prints the counts.
func countFile(ctx context.Context, app *millrace.App, h *home, o options, stdout io.Writer) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(running)
		close(ended)
	}()

	err := h.send(ctx, o.in, o.file)
	if err == nil {
		err = waitCounted(ctx, app, ended)
	}
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	counts, err := h.counts(ctx, o.out)
	if err != nil {
		return err
	}
	return printCounts(stdout, counts)
}

// batchLines is how many lines are sent in one call.
const batchLines = 1000

// send writes the file's lines to the topic, spread over its partitions.
func (h *home) send(ctx context.Context, topic, file string) error {
	in := os.Stdin
	if file != "-" {
		var err error
		if in, err = os.Open(file); err != nil {
			return err
		}
		defer in.Close()
	}
	producer, err := sarama.NewSyncProducerFromClient(h.client)
	if err != nil {
		return err
	}
	defer producer.Close()
	lines, sent := bufio.NewReader(in), 0
	for more := true; more; {
		var batch []*sarama.ProducerMessage
		for more && len(batch) < batchLines {
			line, err := lines.ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read %s: %w", file, err)
			}
			if more = err == nil; more || line != "" {
				batch = append(batch, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(line)})
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := producer.SendMessages(batch); err != nil {
			return fmt.Errorf("send to %s: %w", topic, cause(err))
		}
		sent += len(batch)
	}
	slog.Info("lines sent", "topic", topic, "lines", sent)
	return nil
}

// cause returns why the first of a batch of records was not sent, which sarama's error does not say.
func cause(err error) error {
	var failed sarama.ProducerErrors
	if errors.As(err, &failed) && len(failed) > 0 {
		return failed[0].Err
	}
	return err
}

// waitCounted waits until the application has committed all that its input topics hold.
func waitCounted(ctx context.Context, app *millrace.App, ended <-chan error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return errors.Join(errors.New("the application ended early"), err)
		case <-tick.C:
		}
		lag, err := app.Lag(ctx)
		switch {
		case errors.Is(err, millrace.ErrNotRunning): // it is still starting
		case err != nil:
			return err
		case lag == 0:
			return nil
		}
	}
}

// counts reads the newest count of each word.
func (h *home) counts(ctx context.Context, topic string) (map[string]int64, error) {
	if err := topicread.Settled(ctx, h.client, topic); err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	err := topicread.Committed(ctx, h.client, topic, func(r topicread.Record) error {
		if len(r.Value) != 8 {
			return fmt.Errorf("a count of %d bytes in %s-%d@%d", len(r.Value), topic, r.Partition, r.Offset)
		}
		counts[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
		return nil
	})
	return counts, err
}

func printCounts(w io.Writer, counts map[string]int64) error {
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	out := bufio.NewWriter(w)
	for _, word := range words {
		fmt.Fprintf(out, "%s\t%d\n", word, counts[word])
	}
	return out.Flush()
}
