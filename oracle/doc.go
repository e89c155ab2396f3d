// Package oracle compares Millrace's operators with those of Kafka Streams, record by record.
//
// A scenario ([github.com/millrace-streams/millrace/oracle/scenario]) is run by both: by Kafka Streams on its own test driver in
// the Java program in oracle/java ([KafkaStreams]), and by Millrace ([Millrace]). What is written must be equal: the same
// records with the same timestamps in the same order, each after the same step. Where Millrace differs on purpose,
// docs/DIFFERENCES.md says so, and [Differences] makes of each entry a topology of Kafka Streams that gives what Millrace
// gives; nothing is masked.
//
// The same scenarios are also run on the application, many side by side, on a broker: each record is written to the topics in
// its turn, and in between the application is stopped in good order, dropped in the middle of things, or dropped before its first
// commit, and begun again with or without its local state, on both backends ([NewApplication], TestLive). What is then on the
// output topics, read as committed, must be what Kafka Streams wrote, record by record, and the changelogs must hold what its
// key-value stores held. Without an order are only topics of several partitions: of those, the records themselves are compared.
// With caching, as by default, only the last values of tables are. The application's tasks wait for no step of the wall clock, as
// no operator of scenarios looks at it. Scenarios that end with an error are left out, and named.
//
// The answers in testdata were made by the Java program, so that go test needs no Java:
//
//	go test ./oracle                                         against testdata
//	go test -tags oracle ./oracle                            fresh random scenarios against the Java program
//	go test -tags oracle ./oracle -run TestFresh -kind join. those kinds whose names begin with join.
//	go test -tags oracle ./oracle -run TestLive              on the application too, on the broker of MILLRACE_BROKERS
//	go test -tags oracle ./oracle -run TestRecordedAnswers -update    make the answers in testdata anew
//
// MILLRACE_SEED repeats a run of random scenarios.
package oracle
