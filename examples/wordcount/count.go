package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/topology"
)

// batchLines is how many lines are sent in one call.
const batchLines = 1000

// send writes the file's lines to the topic, spread over its partitions.
func send(ctx context.Context, h *example.Home, to topology.Topic[string, string], file string) error {
	in := os.Stdin
	if file != "-" {
		var err error
		if in, err = os.Open(file); err != nil {
			return err
		}
		defer in.Close()
	}
	lines, sent := bufio.NewReader(in), 0
	for more := true; more; {
		var batch []processor.Record[string, string]
		for more && len(batch) < batchLines {
			line, err := lines.ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read %s: %w", file, err)
			}
			if more = err == nil; more || line != "" {
				batch = append(batch, processor.Record[string, string]{NullKey: true, Value: line})
			}
		}
		if err := example.Send(ctx, h, to, batch...); err != nil {
			return err
		}
		sent += len(batch)
	}
	slog.Info("lines sent", "topic", to.Name(), "lines", sent)
	return nil
}

// printCounts prints the newest count of each word, highest first.
func printCounts(ctx context.Context, h *example.Home, from topology.Topic[string, int64], w io.Writer) error {
	counts := map[string]int64{}
	err := example.NewReader(h, from).Each(ctx, func(r processor.Record[string, int64]) error {
		counts[r.Key] = r.Value
		return nil
	})
	if err != nil {
		return err
	}
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
