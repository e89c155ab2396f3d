//go:build oracle

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

// Kafka Streams and Millrace have figures of every workload that nobody is killed in, and Millrace of the others.
func TestEveryWorkloadHasFigures(t *testing.T) {
	for name, args := range map[string][]string{
		"side by side": {"-contender", "millrace,kafka-streams", "-workload", "count-1k,words,windows,join,restore,latency-1k", "-html", filepath.Join(t.TempDir(), "page.html")},
		"recovery":     {"recovery", "-contender", "millrace"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append(args, "-brokers", strings.Join(brokertest.Brokers(t), ","), "-scale", "0.001", "-runs", "1"))
			if err != nil {
				t.Fatal(err)
			}
			o.peer = "peer"
			if err := run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		})
	}
}
