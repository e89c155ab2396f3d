package wire

import (
	"io"
	"math"
	"time"
)

// Kafka's numbers of requests.
const (
	Produce         int16 = 0
	Fetch           int16 = 1
	ListOffsets     int16 = 2
	Metadata        int16 = 3
	OffsetFetch     int16 = 9
	FindCoordinator int16 = 10
	JoinGroup       int16 = 11
	Heartbeat       int16 = 12
	SyncGroup       int16 = 14
	InitProducerID  int16 = 22
	AddPartitions   int16 = 24 // AddPartitionsToTxn
	AddOffsets      int16 = 25 // AddOffsetsToTxn
	EndTxn          int16 = 26
	TxnOffsetCommit int16 = 28
)

// Names are the requests' names in Kafka's protocol.
var Names = map[int16]string{
	Produce: "Produce", Fetch: "Fetch", ListOffsets: "ListOffsets", Metadata: "Metadata", OffsetFetch: "OffsetFetch",
	FindCoordinator: "FindCoordinator", JoinGroup: "JoinGroup", Heartbeat: "Heartbeat", SyncGroup: "SyncGroup",
	InitProducerID: "InitProducerId", AddPartitions: "AddPartitionsToTxn", AddOffsets: "AddOffsetsToTxn", EndTxn: "EndTxn",
	TxnOffsetCommit: "TxnOffsetCommit",
}

// Action is what becomes of a message.
type Action uint8

// The actions. All but the first two concern the answer: the broker has done what it was asked.
const (
	LoseRequest   Action = iota // the connection ends before the broker gets the request
	PassRequest                 // nothing, but what Do does
	LoseAnswer                  // the connection ends instead of the answer
	CutAnswer                   // the connection ends in the middle of the answer
	SwallowAnswer               // the answer never comes, and the connection stays
	DelayAnswer                 // the answer comes late, and so does what follows on the connection
)

// String says what happens.
func (a Action) String() string {
	return [...]string{LoseRequest: "request lost", PassRequest: "request passed on", LoseAnswer: "answer lost", CutAnswer: "answer cut", SwallowAnswer: "answer swallowed",
		DelayAnswer: "answer late"}[a]
}

func (a Action) concernsAnswers() bool { return a > PassRequest }

// Rule says what becomes of the next messages of one kind.
type Rule struct {
	Key    int16
	Action Action
	Times  int           // how many messages; 0 is 1, see Always
	Delay  time.Duration // of DelayAnswer
	// Do, if set, is called each time before anything happens to the message.
	Do func()
	// Applied, if set, is closed when the rule is applied for the first time.
	Applied chan struct{}

	applied int // guarded by the proxy
}

// Always as Times lets a rule be over only when it is disarmed.
const Always = math.MaxInt

// apply treats a message, and reports whether the connection goes on.
func (r *Rule) apply(l *link, to io.Writer, message []byte) bool {
	if r.Do != nil {
		r.Do()
	}
	switch r.Action {
	case PassRequest:
		_, err := to.Write(message)
		return err == nil
	case CutAnswer:
		_, _ = to.Write(message[:len(message)/2])
		return false
	case SwallowAnswer:
		l.proxy.mu.Lock()
		l.mute = true
		l.proxy.mu.Unlock()
		return true
	case DelayAnswer:
		select {
		case <-time.After(r.Delay):
		case <-l.over:
		}
		_, err := to.Write(message)
		return err == nil
	}
	return false
}
