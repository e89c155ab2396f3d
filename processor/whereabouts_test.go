package processor

import (
	"sync/atomic"
	"testing"
)

// A task that is asked to yield stops behind the record in work, and can be asked from outside where it is.
func TestYieldAndWhereabouts(t *testing.T) {
	task := keeper(in("a", ""))
	task.spec = &Spec{Nodes: []*Node{{Name: "source"}, {Name: "slow"}}}
	var yield atomic.Bool
	task.opt = Options{Yield: &yield, Consumed: func(TopicPartition, int) {}}
	asked, answered := make(chan struct{}), make(chan Whereabouts)
	task.inputs[0].source = func(*Raw) error {
		task.node = 1
		asked <- struct{}{}
		<-asked
		return nil
	}
	go func() {
		<-asked
		yield.Store(true)
		at := task.Whereabouts()
		asked <- struct{}{}
		answered <- at
	}()
	task.Enqueue(TopicPartition{Topic: "a"}, []Raw{{Offset: 7}, {Offset: 8}, {Offset: 9}}, 10, 1, false)
	if n, err := task.Run(1, 10); n != 1 || err != nil {
		t.Fatalf("ran %d, %v", n, err)
	}
	if at := <-answered; at.Node != "slow" || at.Topic != "a" || at.Offset != 7 {
		t.Errorf("got %+v", at)
	}
	if n := task.Buffered(); n != 2 {
		t.Errorf("%d are left", n)
	}
	task.record, task.inputOf, task.node = nil, nil, -1
	if at := task.Whereabouts(); at != (Whereabouts{Offset: -1}) {
		t.Errorf("got %+v", at)
	}
}
