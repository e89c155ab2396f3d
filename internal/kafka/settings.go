package kafka

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// CheckSettings logs a warning for each setting of a topic that would let the broker delete, or compact away, what the
// application still needs. An error says that the settings cannot be had.
func (c *Cluster) CheckSettings(topics []NewTopic) error {
	if len(topics) == 0 {
		return nil
	}
	admin, err := c.openAdmin()
	if err != nil {
		return err
	}
	defer admin.Close()
	resources := make([]*sarama.ConfigResource, len(topics))
	for i, t := range topics {
		resources[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: t.Name}
	}
	results, err := admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return fmt.Errorf("kafka: configuration of topics: %w", err)
	}
	for _, r := range results {
		if r.ErrorCode != sarama.ErrNoError {
			return fmt.Errorf("kafka: configuration of topic %q: %w", r.Name, r.ErrorCode)
		}
		i := slices.IndexFunc(topics, func(t NewTopic) bool { return t.Name == r.Name })
		if i < 0 {
			continue
		}
		has := map[string]string{}
		for _, e := range r.Configs {
			has[e.Name] = e.Value
		}
		for _, wrong := range wrongSettings(topics[i].Config, has) {
			c.cfg.Logger.Warn("a topic of the application has a setting that may lose what is needed: change it, or let the application make the topic",
				"topic", r.Name, "setting", wrong.name, "is", wrong.is, "should be", wrong.want, "because", wrong.why)
		}
	}
	return nil
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
