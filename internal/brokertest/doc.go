// Package brokertest gives tests a Kafka broker and the few things that tests do with one: topics with unique names,
// records in, committed records out, committed group offsets, a bounded wait.
//
// Brokers chooses the broker once per test process:
//
//   - the addresses in MILLRACE_BROKERS (comma separated), when it is set;
//   - else a container through testcontainers-go, when a Docker engine answers; MILLRACE_KAFKA_IMAGE names the image
//     (apache/kafka:4.2.0 unless told). MILLRACE_CONTAINER=0 never asks for an engine, and MILLRACE_CONTAINER=1 makes
//     a container that cannot be had an error instead of a loud fall-back (on standard error, which go test shows
//     with -v);
//   - else the embedded broker, which needs nothing.
//
// All tests of a process share that broker, so they use topics, groups and transactional ids of their own (Topic,
// UniqueName). A test that needs faults or restarts takes a private broker from Embedded. A package whose tests call
// Brokers should have
//
//	func TestMain(m *testing.M) { brokertest.Main(m) }
//
// which keeps the broker from the first test that wants it to the last. Without it the broker ends whenever no running
// test uses it, which is slow with containers.
package brokertest
