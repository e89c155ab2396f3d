package kafka

import (
	"encoding/binary"

	"github.com/millrace-streams/millrace/internal/assign"
	"github.com/millrace-streams/millrace/processor"
)

// memberFormat and shareFormat are the first bytes of what members tell the leader and of what it tells them. Later formats
// may only append, and readers take what they know: members of several versions work in one group during an upgrade.
const (
	memberFormat = 2 // 1 had the workers only
	shareFormat  = 1
)

// memberData is what a member tells the leader beside the partitions that it owns.
type memberData struct {
	workers  int
	guest    bool // is here only to make the group rebalance, and takes nothing
	rack     string
	promised []processor.TaskID
	states   []taskState
}

// taskState is how far a member's stores of a task have come. position is the sum of their changelog offsets.
type taskState struct {
	task        processor.TaskID
	open, ready bool
	position    int64
}

const (
	openBit = 1 << iota
	readyBit
)

func (m memberData) encode() []byte {
	e := binary.AppendUvarint([]byte{memberFormat}, uint64(m.workers))
	flags := uint64(0)
	if m.guest {
		flags = 1
	}
	e = binary.AppendUvarint(e, flags)
	e = binary.AppendUvarint(e, uint64(len(m.rack)))
	e = append(e, m.rack...)
	e = appendTasks(e, m.promised)
	e = binary.AppendUvarint(e, uint64(len(m.states)))
	for _, s := range m.states {
		bits := uint64(0)
		if s.open {
			bits |= openBit
		}
		if s.ready {
			bits |= readyBit
		}
		e = appendTask(e, s.task)
		e = binary.AppendUvarint(e, bits)
		e = binary.AppendUvarint(e, uint64(max(s.position, 0)))
	}
	return e
}

// decodeMember reads what a member says, as far as it can be read: it has one worker if that is not known.
func decodeMember(data []byte) (m memberData) {
	m.workers = 1
	if len(data) < 2 || data[0] < 1 {
		return m
	}
	d := decoder{data: data[1:]}
	if n := d.number(); !d.bad && n > 0 && n <= 1<<16 {
		m.workers = int(n)
	}
	if data[0] < 2 {
		return m
	}
	m.guest = d.number()&1 != 0
	m.rack = string(d.bytes())
	m.promised = d.tasks()
	for n := d.count(); n > 0 && !d.bad; n-- {
		s := taskState{task: d.task()}
		bits := d.number()
		s.open, s.ready, s.position = bits&openBit != 0, bits&readyBit != 0, int64(d.number())
		if !d.bad && s.position >= 0 {
			m.states = append(m.states, s)
		}
	}
	return m
}

// encodeShare writes what a member is to do beside working on its partitions.
func encodeShare(s assign.Share) []byte {
	return appendTasks(appendTasks(appendTasks([]byte{shareFormat}, s.Standby), s.Warmup), s.Promised)
}

// decodeShare reads it. Data that cannot be read, such as the leader of an old version sends, is no standbys.
func decodeShare(data []byte) (s assign.Share) {
	if len(data) == 0 || data[0] < 1 {
		return s
	}
	d := decoder{data: data[1:]}
	all := assign.Share{Standby: d.tasks(), Warmup: d.tasks(), Promised: d.tasks()}
	if d.bad {
		return s
	}
	return all
}

func appendTasks(e []byte, tasks []processor.TaskID) []byte {
	e = binary.AppendUvarint(e, uint64(len(tasks)))
	for _, t := range tasks {
		e = appendTask(e, t)
	}
	return e
}

func appendTask(e []byte, t processor.TaskID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(e, uint64(t.Subtopology)), uint64(t.Partition))
}

// decoder reads numbers and lists. After the first that is not there, it is bad and brings zeros.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.data)
	if d.bad = d.bad || n <= 0; d.bad {
		return 0
	}
	d.data = d.data[n:]
	return v
}

// count is a number of things that follow, each of which takes a byte at least.
func (d *decoder) count() int {
	n := d.number()
	if d.bad = d.bad || n > uint64(len(d.data)); d.bad {
		return 0
	}
	return int(n)
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) task() processor.TaskID {
	sub, partition := d.number(), d.number()
	return processor.TaskID{Subtopology: int32(sub), Partition: int32(partition)}
}

func (d *decoder) tasks() (tasks []processor.TaskID) {
	for n := d.count(); n > 0 && !d.bad; n-- {
		tasks = append(tasks, d.task())
	}
	if d.bad {
		return nil
	}
	return tasks
}
