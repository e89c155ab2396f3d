// Package integration holds the tests that run whole applications on a broker: the one named by MILLRACE_BROKERS, else a
// container, else the embedded one (see internal/brokertest).
//
// Some tests need a process that can be killed. The test binary then starts itself again as a child (child_test.go). Those
// with the build tag chaos take longer, and need a real broker:
//
//	MILLRACE_BROKERS=localhost:9092 go test -tags chaos -run 'TestKill9|TestTwoProcesses|TestBrokerRestart' ./integration
//
// TestBrokerRestart starts a broker of its own through scripts/kafka/broker.sh. Random tests print their seed; MILLRACE_SEED
// repeats one.
package integration
