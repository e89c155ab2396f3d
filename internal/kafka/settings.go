package kafka

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// CheckSettings logs a warning for each setting of a topic that would let the broker delete, or compact away, what the
// application still needs. An error says that the settings cannot be had.
func (c *Cluster) CheckSettings(topics []NewTopic) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	settings, err := c.settings(names)
	if err != nil {
		return err
	}
	for _, t := range topics {
		has, known := settings[t.Name]
		if !known {
			continue
		}
		for _, wrong := range wrongSettings(t.Config, has) {
			c.cfg.Logger.Warn("a topic of the application has a setting that may lose what is needed: change it, or let the application make the topic",
				"topic", t.Name, "setting", wrong.name, "is", wrong.is, "should be", wrong.want, "because", wrong.why)
		}
	}
	return nil
}

// defaultDeleteRetention is Kafka's.
const defaultDeleteRetention = 24 * time.Hour

// DeleteRetentions returns how long topics keep tombstones: delete.retention.ms, or Kafka's default of a day where the
// brokers do not say, as all of them if there is an error too.
func (c *Cluster) DeleteRetentions(topics []string) (map[string]time.Duration, error) {
	settings, err := c.settings(topics)
	all := map[string]time.Duration{}
	for _, name := range topics {
		all[name] = defaultDeleteRetention
		if ms, err := strconv.ParseInt(settings[name]["delete.retention.ms"], 10, 64); err == nil {
			all[name] = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
		}
	}
	return all, err
}

// settings asks for the settings of topics, by topic and name.
func (c *Cluster) settings(topics []string) (map[string]map[string]string, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	admin, err := c.openAdmin()
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	resources := make([]*sarama.ConfigResource, len(topics))
	for i, name := range topics {
		resources[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: name}
	}
	results, err := admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, fmt.Errorf("kafka: configuration of topics: %w", err)
	}
	all := map[string]map[string]string{}
	for _, r := range results {
		if r.ErrorCode != sarama.ErrNoError {
			return nil, fmt.Errorf("kafka: configuration of topic %q: %w", r.Name, r.ErrorCode)
		}
		all[r.Name] = map[string]string{}
		for _, e := range r.Configs {
			all[r.Name][e.Name] = e.Value
		}
	}
	return all, nil
}

// wrongSetting is a setting that loses records.
type wrongSetting struct{ name, is, want, why string }

// wrongSettings compares a topic's settings with those that it should have.
func wrongSettings(want, has map[string]string) (wrong []wrongSetting) {
	policy, wanted := strings.Split(has["cleanup.policy"], ","), strings.Split(want["cleanup.policy"], ",")
	deletes, compacts := slices.Contains(policy, "delete"), slices.Contains(policy, "compact")
	forever := endless(has["retention.ms"]) && endless(has["retention.bytes"])
	switch {
	case slices.Contains(wanted, "compact") && !compacts:
		wrong = append(wrong, wrongSetting{"cleanup.policy", has["cleanup.policy"], want["cleanup.policy"], "records are deleted by age or size, not compacted: the store cannot be restored in full"})
	case !slices.Contains(wanted, "compact") && compacts:
		wrong = append(wrong, wrongSetting{"cleanup.policy", has["cleanup.policy"], want["cleanup.policy"], "records of equal keys are compacted away before they are processed"})
	case !slices.Contains(wanted, "delete") && deletes && !forever:
		wrong = append(wrong, wrongSetting{"cleanup.policy", has["cleanup.policy"], want["cleanup.policy"], "records are deleted by age or size: the store cannot be restored in full"})
	}
	for name, why := range map[string]string{
		"retention.ms":          "records are deleted before the store lets go of them",
		"min.compaction.lag.ms": "old versions are compacted away before the store lets go of them",
	} {
		least, needed := want[name]
		if needed && (name != "retention.ms" || deletes) && shorter(has[name], least) {
			wrong = append(wrong, wrongSetting{name, has[name], least, why})
		}
	}
	return wrong
}

// endless reports a bound that is none.
func endless(value string) bool { return strings.HasPrefix(value, "-") }

// shorter reports whether a number is less than another; -1 is more than any. What is no number is not judged.
func shorter(is, than string) bool {
	a, err := strconv.ParseInt(is, 10, 64)
	b, err2 := strconv.ParseInt(than, 10, 64)
	if err != nil || err2 != nil || a < 0 {
		return false
	}
	return b < 0 || a < b
}
