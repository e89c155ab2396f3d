package millrace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-streams/millrace/processor"
	"github.com/millrace-streams/millrace/serde"
	"github.com/millrace-streams/millrace/topology"
)

func copying(t *testing.T) *topology.Topology {
	t.Helper()
	b := topology.NewBuilder()
	in, out := topology.NewTopic("in", serde.String, serde.String), topology.NewTopic("out", serde.String, serde.String)
	topology.To(topology.From(b, in), out)
	topo, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func TestConfigNamesEveryMistake(t *testing.T) {
	_, err := New(copying(t), Config{
		ApplicationID: "no spaces", Guarantee: 7, OffsetReset: 7, LostInput: 7, LostState: 7, MaxPollInterval: -1, Workers: -1, CommitInterval: time.Nanosecond,
		StagedBytes: -1, Compression: "paper", Errors: processor.ErrorPolicy{Decode: processor.SendDeadLetter},
	})
	if !errors.Is(err, ErrConfig) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"no spaces", "Brokers", "Guarantee 7", "OffsetReset 7", "LostInput 7", "LostState 7", "MaxPollInterval is -1ns", "Workers is -1", "CommitInterval is 1ns", "StagedBytes", "paper", "dead-letter topic"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in:\n%v", part, err)
		}
	}
	if _, err := New(nil, Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("without a topology: %v", err)
	}
}

func TestConfigDefaults(t *testing.T) {
	app, err := New(copying(t), Config{ApplicationID: "app", Brokers: []string{"localhost:9092"}})
	if err != nil {
		t.Fatal(err)
	}
	c := app.cfg
	if c.Guarantee != ExactlyOnce || c.CommitInterval != 100*time.Millisecond || c.Workers < 1 || !c.Store.Durable() || c.MaxRecordBytes != 1<<20 {
		t.Fatalf("got %+v", c)
	}
}
