package kafka

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/millrace-streams/millrace/internal/brokertest"
)

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	rows := map[string]string{"cleanup.policy": "compact"}
	windows := map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "1000"}
	versions := map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": "1000"}
	repartition := map[string]string{"cleanup.policy": "delete", "retention.ms": "-1"}
	has := func(policy, retention, lag string) map[string]string {
		return map[string]string{"cleanup.policy": policy, "retention.ms": retention, "min.compaction.lag.ms": lag, "retention.bytes": "-1"}
	}
	for name, c := range map[string]struct {
		want, has map[string]string
		wrong     []string
	}{
		"rows":                     {rows, has("compact", "5", "0"), nil},
		"rows deleted":             {rows, has("delete", "5", "0"), []string{"cleanup.policy"}},
		"rows deleted as well":     {rows, has("compact,delete", "5", "0"), []string{"cleanup.policy"}},
		"rows kept for ever":       {rows, has("delete,compact", "-1", "0"), nil},
		"windows":                  {windows, has("compact,delete", "1000", "0"), nil},
		"windows for ever":         {windows, has("compact", "5", "0"), nil},
		"windows endless":          {windows, has("compact,delete", "-1", "0"), nil},
		"windows deleted early":    {windows, has("compact,delete", "999", "0"), []string{"retention.ms"}},
		"windows not compacted":    {windows, has("delete", "2000", "0"), []string{"cleanup.policy"}},
		"versions":                 {versions, has("compact", "5", "1000"), nil},
		"versions compacted early": {versions, has("compact", "5", "0"), []string{"min.compaction.lag.ms"}},
		"repartition":              {repartition, has("delete", "-1", "0"), nil},
		"repartition expires":      {repartition, has("delete", "604800000", "0"), []string{"retention.ms"}},
		"repartition compacted":    {repartition, has("compact", "-1", "0"), []string{"cleanup.policy"}},
	} {
		var wrong []string
		for _, w := range wrongSettings(c.want, c.has) {
			wrong = append(wrong, w.name)
		}
		if !slices.Equal(wrong, c.wrong) {
			t.Errorf("%s: %v, want %v", name, wrong, c.wrong)
		}
	}
}

func TestSettingsAreAskedFor(t *testing.T) {
	t.Parallel()
	brokers := brokertest.Brokers(t)
	right, wrong := brokertest.UniqueName(t, "right"), brokertest.UniqueName(t, "wrong")
	brokertest.CreateTopic(t, brokers, right, 1, map[string]string{"cleanup.policy": "compact"})
	brokertest.CreateTopic(t, brokers, wrong, 1, map[string]string{"cleanup.policy": "delete"})
	var log logged
	cfg := options(brokers, brokertest.UniqueName(t, "app"), "p")
	cfg.Logger = log.logger(slog.LevelWarn)
	compacted := map[string]string{"cleanup.policy": "compact"}
	must(t, open(t, cfg).CheckSettings([]NewTopic{{Name: right, Config: compacted}, {Name: wrong, Config: compacted}}))
	if log.count(right) != 0 || log.count(wrong) != 1 {
		t.Errorf("logged: %s", log.text.String())
	}
}
