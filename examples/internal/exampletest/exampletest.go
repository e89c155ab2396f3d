// Package exampletest runs the example programs, and their topologies on their samples, in tests.
package exampletest

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/examples/internal/example"
	"github.com/millrace-streams/millrace/testdriver"
)

// Run runs a program as example.Main does it, and returns what it prints.
func Run[O any](
	t testing.TB, parse func([]string) (O, error), run func(context.Context, O, io.Writer) error, args ...string,
) string {
	t.Helper()
	o, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, o, &out); err != nil {
		t.Fatalf("%v; printed so far:\n%s", err, &out)
	}
	return out.String()
}

// Feed sends a sample to a topology, record by record.
func Feed(d *testdriver.Driver, sample []example.Input) {
	for _, in := range sample {
		testdriver.Input(d, in.Topic).SendAll(in.Record)
	}
}
