package processor

import (
	"maps"
	"testing"
)

// Marks are in every position that is named, and a change of them keeps the rest of the metadata.
func TestMarksAreThoseOfTheNewestCommit(t *testing.T) {
	task := keeper(in("a", ""), in("b", ""))
	task.opt.Marks = []Mark{{"@/one", 7}}
	at := map[string]string{}
	commit := func(topic string) {
		t.Helper()
		task.byPartition[TopicPartition{Topic: topic}].next++
		var c Commit
		if err := task.Prepare(&c); err != nil || len(c.Positions) != 1 {
			t.Fatal(c, err)
		}
		at[topic] = c.Positions[0].Metadata
	}
	check := func(want map[string]int64) {
		t.Helper()
		if got := Marks([]string{at["a"], at["b"]}); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check(map[string]int64{})
	commit("a")
	task.opt.Marks = []Mark{{"@/one", 8}, {"@/two", 1}}
	commit("b")
	check(map[string]int64{"@/one": 8, "@/two": 1})
	kept := task.Keep("kept")
	kept.Set(42)
	task.inputs[0].time = 99
	commit("a")

	at["a"] = Remark(at["a"], []Mark{{"@/three", 3}})
	check(map[string]int64{"@/three": 3})
	again := keeper(in("a", at["a"]), in("b", at["b"]))
	if n, ts := again.Keep("kept").Value(), DecodePartitionTime(at["a"]); n != 42 || ts != 99 {
		t.Errorf("kept %d, time %d", n, ts)
	}
	if again.commits != task.commits {
		t.Errorf("commit %d became %d", task.commits, again.commits)
	}
	fresh := Remark("", []Mark{{"@/one", 5}})
	if ts := DecodePartitionTime(fresh); ts != Unknown {
		t.Errorf("a new partition has the time %d", ts)
	}
	if got := Marks([]string{fresh, "", Remark("", []Mark{{"@/two", 6}})}); !maps.Equal(got, map[string]int64{"@/one": 5, "@/two": 6}) {
		t.Errorf("got %v", got)
	}
}
