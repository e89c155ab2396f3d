package kafka

import (
	"reflect"
	"testing"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/processor"
)

func TestMemberDataIsReadBack(t *testing.T) {
	t.Parallel()
	task := func(s, p int32) processor.TaskID { return processor.TaskID{Subtopology: s, Partition: p} }
	for _, m := range []memberData{
		{workers: 1}, {workers: 300}, {workers: 1, guest: true},
		{workers: 8, rack: "eu-1a", promised: []processor.TaskID{task(0, 3)}, states: []taskState{
			{task: task(1, 200), open: true, ready: true, position: 1 << 40}, {task: task(0, 1)}, {task: task(2, 0), open: true, position: 5},
		}},
	} {
		data := m.encode()
		if got := decodeMember(data); !reflect.DeepEqual(got, m) {
			t.Errorf("%+v became %+v", m, got)
		}
		if got := decodeMember(append(data, "later formats"...)); !reflect.DeepEqual(got, m) {
			t.Errorf("a longer format: %+v became %+v", m, got)
		}
		for n := range data { // cut short
			if got := decodeMember(data[:n]); got.workers < 1 || len(got.states) > len(m.states) {
				t.Errorf("%d of %d bytes: %+v", n, len(data), got)
			}
		}
	}
	if got := decodeMember([]byte{1, 5}); !reflect.DeepEqual(got, memberData{workers: 5}) {
		t.Errorf("the first format: %+v", got)
	}
	for _, data := range [][]byte{nil, {}, {1}, {0, 4}, {1, 0}, {1, 0x80}, {1, 0xff, 0xff, 0xff, 0xff, 0x0f}, {2, 1, 0, 0xff, 0xff, 0x03}} {
		if got := decodeMember(data); got.workers != 1 || len(got.states) > 0 {
			t.Errorf("%v: %+v", data, got)
		}
	}
}

func TestSharesAreReadBack(t *testing.T) {
	t.Parallel()
	a, b, c := processor.TaskID{Partition: 1}, processor.TaskID{Subtopology: 3, Partition: 500}, processor.TaskID{}
	for _, s := range []assign.Share{{}, {Standby: []processor.TaskID{a, b}}, {Standby: []processor.TaskID{c}, Warmup: []processor.TaskID{b}, Promised: []processor.TaskID{b, a}}} {
		data := encodeShare(s)
		if got := decodeShare(append(data, 7)); !reflect.DeepEqual(got, s) {
			t.Errorf("%+v became %+v", s, got)
		}
		for n := range data {
			if got := decodeShare(data[:n]); n > 0 && !reflect.DeepEqual(got, assign.Share{}) {
				t.Errorf("%d of %d bytes: %+v", n, len(data), got)
			}
		}
	}
}
