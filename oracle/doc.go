// Package oracle compares Millrace's operators with those of Kafka Streams, record by record.
//
// A scenario ([github.com/millrace-streams/millrace/oracle/scenario]) is run by both: by Kafka Streams on its own test driver in
// the Java program in oracle/java ([KafkaStreams]), and by Millrace ([Millrace]). What is written must be equal: the same
// records with the same timestamps in the same order, each after the same step. Where Millrace differs on purpose,
// docs/DIFFERENCES.md says so, and [Differences] makes of each entry a topology of Kafka Streams that gives what Millrace
// gives; nothing is masked.
//
// The answers in testdata were made by the Java program, so that go test needs no Java:
//
//	go test ./oracle                                         against testdata
//	go test -tags oracle ./oracle                            fresh random scenarios against the Java program
//	go test -tags oracle ./oracle -run TestFresh -kind join. those kinds whose names begin with join.
//	go test -tags oracle ./oracle -run TestGolden -update    make the answers in testdata anew
//
// MILLRACE_SEED repeats a run of random scenarios.
package oracle
