package model

// What cannot be derived from the settings. Each constant says where it comes from: a place in the code, or a command that
// measures it. The figures are of 2 cores with the broker, one Apache Kafka 4.2 node, on the same machine.
const (
	mb = 1 << 20

	// Where the code says so.
	drainShare    = 10  // wiring.go: a drained input is committed after a tenth of the commit interval
	inlineValue   = 16  // store/entry.go, store/memory: room for a small value inside an entry
	beatSeconds   = 0.3 // internal/kafka/config.go: the longest HeartbeatInterval, a tenth of a short session
	fetchWait     = 0.1 // internal/kafka/config.go: how long a broker holds a fetch for data to come
	lanes         = 2   // internal/kafka/fetcher.go: connections that read from each broker
	checkSeconds  = 1   // internal/kafka/standby.go: a process asks for the ends of the changelogs that it follows
	warmupCheck   = 0.3 // internal/kafka/standby.go: how often a process looks whether it has warmed up
	pageBytes     = 4096
	fixedRequests = 4 // eos: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, beside Produce. The first is made once or
	// twice again by a worker that commits all the time, as long as the broker still writes the last one's markers

	// go test -run TestBytes -v ./bench/internal/model
	layerEntry  = 150  // bytes of an entry of a write set beside its key and a value that is not inside; WriteSet.Bytes counts 152
	memoryEntry = 99   // the same of store/memory
	diskEntry   = 29   // bytes of an entry in a page of bbolt beside key and value: prefix, checksum, timestamp, bbolt's element
	pageFill    = 0.66 // of pages that are written in a random order, batch by batch
	fileBytes   = 64 << 10

	// go run ./bench -workload 'count-*' -contender millrace,millrace-memory
	recordCPU    = 0.55e-6 // CPU seconds of a record whose key is met again within the commit (count-1k)
	entryCPU     = 2.4e-6  // of each key of a commit: look-ups, layers, two records to send (count-100k, count-1m in memory)
	flushCPU     = 1.5e-6  // of each entry that is written to a file (count-1m in bbolt, beyond memory)
	baseMemory   = 60      // MB of a process with little state (count-1k)
	heapGrowth   = 2.5     // largest resident set over live heap: GOGC=100, and what is allocated while it collects
	commitRecord = 500     // bytes of a record of a commit, in the task, the commit, the client and the request

	// go run ./bench -workload restore -contender millrace,millrace-memory
	restoreRate = 0.65e6 // changelog records/s of a core

	// go test -run xxx -bench BoltOpen ./store
	openRate = 250 << 20 // bytes/s of a file that is checked as it is opened

	// go run ./bench recovery -workload restart,takeover -contender millrace
	startSeconds     = 0.3 // from a start to the first lease
	rebalanceSeconds = 0.3 // from the end of a session to the first lease of the others

	// MILLRACE_BROKERS=... go test -run xxx -bench Traffic -benchtime 10s ./bench/internal/model
	transactionCPU  = 1.2e-3 // CPU seconds of the client
	restCPU         = 0.015  // cores of a process with nothing to do
	fetchSeconds    = 0.002  // the shortest time between two fetches of a lane
	requestBytes    = 190    // of a request without records
	partitionBytes  = 30     // of each partition that a request names
	recordBytes     = 16     // of a record beside key and value, before compression
	batchBytes      = 70     // of a batch, one for each partition of a commit
	metadataSeconds = 30     // between two requests for metadata of each of the clients

	// Defaults of millrace.Config that only the plan asks for.
	maxWarmups    = 2
	acceptableLag = 10_000

	segmentSeconds = 7 * 24 * 3600 // segment.ms of Kafka's topics, after which a new segment begins all the same

	// Assumptions about the cluster, to be replaced by one's own.
	brokerRequests = 10_000 // requests/s that a broker answers beside its other work
	brokerMBytes   = 50     // MB/s that a broker takes or gives
	longRecovery   = 60     // seconds without a task that are too many
)
