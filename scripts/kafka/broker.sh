#!/usr/bin/env bash
# usage: broker.sh start|stop|kill|restart|status DATA_DIR [PORT]
#
# A single Apache Kafka KRaft node on 127.0.0.1:PORT (9092 unless told; its controller on PORT+1), in the background.
#   start    formats DATA_DIR on first use, starts the node and returns once it answers a metadata request
#   stop     ends it cleanly (TERM) and waits; its data stay
#   kill     ends it as a crash would (KILL) and waits; its data stay as they are
#   restart  stop, then start on the same port
#   status   exit code 0 and the address when it answers, 3 when it is stopped, 4 when it runs but does not answer
# start on a running node and stop on a stopped one do nothing. DATA_DIR keeps server.log, kafka.pid and kafka.port.
# Environment: KAFKA_LIB (folder of jars), KAFKA_HEAP (-Xmx, 1g), KAFKA_LOG_LEVEL (warn), KAFKA_START_TIMEOUT (seconds, 120),
# KAFKA_PROPERTIES (a file whose lines are added to server.properties).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[ $# -ge 2 ] && [ $# -le 3 ] || usage
CMD=$1
mkdir -p "$2"
DIR=$(cd "$2" && pwd)
PORT=${3:-$(cat "$DIR/kafka.port" 2>/dev/null || echo 9092)}
case $PORT in '' | *[!0-9]*) usage ;; esac
CONTROLLER=$((PORT + 1))

# running prints the pid when the recorded process still is a broker of this directory.
running() {
  local pid
  pid=$(cat "$DIR/kafka.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF "kafka.Kafka $DIR/server.properties" || return 1
  echo "$pid"
}

# answers sends a Metadata v0 request for all topics and wants a response that lists one broker.
answers() {
  local head
  head=$(timeout 3 bash -c '
    exec 3<>/dev/tcp/127.0.0.1/'"$PORT"' || exit 1
    printf "\0\0\0\016\0\003\0\0\0\0\0\052\377\377\0\0\0\0" >&3
    dd bs=1 count=12 <&3 2>/dev/null | od -An -v -tx1 | tr -d " \n"' 2>/dev/null) || return 1
  [ "${head:8:16}" = 0000002a00000001 ] # our correlation id, then the number of brokers
}

# session chooses the node's session with its own controller. A busy machine must not make the node lose it, so it is long.
# But after a crash the node may only come back when the session of its last life has run out, so then it is short.
session() {
  SESSION=60000
  if [ -d "$DIR/data" ] && [ ! -f "$DIR/data/.kafka_cleanshutdown" ]; then SESSION=5000; fi
}

properties() {
  cat <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$CONTROLLER
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$DIR/data
num.partitions=4
auto.create.topics.enable=false
# One node: the internal topics cannot be replicated, and few partitions load quickly.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.share.enable=false
# Groups form at once, and tests may use short timeouts.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
# Records of tests carry times of their own, often of 1970: they are not to age out.
log.retention.ms=-1
broker.session.timeout.ms=$SESSION
initial.broker.registration.timeout.ms=120000
EOF
  if [ -n "${KAFKA_PROPERTIES:-}" ]; then cat "$KAFKA_PROPERTIES"; fi
}

fail() { # fail MESSAGE: with the end of the log, which says why
  echo "kafka: $1; the last lines of $DIR/server.log:" >&2
  tail -n 30 "$DIR/server.log" >&2 2>/dev/null || true
  exit 1
}

format() {
  [ -f "$DIR/data/meta.properties" ] && return 0
  java -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$LIB/*" \
    kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$DIR/server.properties" > "$DIR/server.log" 2>&1 \
    || fail "formatting $DIR/data failed"
}

wait_answer() { # wait_answer PID
  local deadline=$((SECONDS + ${KAFKA_START_TIMEOUT:-120}))
  until answers; do
    kill -0 "$1" 2>/dev/null || { rm -f "$DIR/kafka.pid"; fail "the broker on port $PORT ended while starting"; }
    if [ "$SECONDS" -ge "$deadline" ]; then
      kill -KILL "$1" 2>/dev/null || true
      rm -f "$DIR/kafka.pid"
      fail "the broker on port $PORT did not answer in ${KAFKA_START_TIMEOUT:-120} s"
    fi
    sleep 0.2
  done
}

start() {
  local pid
  if pid=$(running); then
    [ "$PORT" = "$(cat "$DIR/kafka.port")" ] || { echo "kafka: $DIR is in use on port $(cat "$DIR/kafka.port")" >&2; exit 1; }
    wait_answer "$pid"
    echo "kafka: already running on 127.0.0.1:$PORT (pid $pid)"
    return 0
  fi
  if answers; then echo "kafka: another broker answers on 127.0.0.1:$PORT" >&2; exit 1; fi
  LIB=$("$HERE/lib.sh")
  session
  properties > "$DIR/server.properties"
  format
  setsid nohup java "-Xmx${KAFKA_HEAP:-1g}" "-Dorg.slf4j.simpleLogger.defaultLogLevel=${KAFKA_LOG_LEVEL:-warn}" \
    -Dorg.slf4j.simpleLogger.showDateTime=true "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS" \
    -cp "$LIB/*" kafka.Kafka "$DIR/server.properties" >> "$DIR/server.log" 2>&1 < /dev/null &
  pid=$!
  echo "$pid" > "$DIR/kafka.pid"
  echo "$PORT" > "$DIR/kafka.port"
  wait_answer "$pid"
  echo "kafka: running on 127.0.0.1:$PORT (pid $pid, data in $DIR)"
}

end() { # end SIGNAL SECONDS
  local pid deadline=$((SECONDS + $2))
  pid=$(running) || { rm -f "$DIR/kafka.pid"; echo "kafka: not running in $DIR"; return 0; }
  kill "-$1" "$pid" 2>/dev/null || true
  while running > /dev/null; do
    [ "$SECONDS" -lt "$deadline" ] || { echo "kafka: pid $pid did not end on $1 in $2 s" >&2; exit 1; }
    sleep 0.1
  done
  rm -f "$DIR/kafka.pid"
  echo "kafka: ended pid $pid in $DIR ($1)"
}

status() {
  local pid
  pid=$(running) || { echo "kafka: stopped ($DIR)"; return 3; }
  answers || { echo "kafka: pid $pid does not answer on 127.0.0.1:$PORT"; return 4; }
  echo "127.0.0.1:$PORT"
}

case $CMD in
  start) start ;;
  stop) end TERM 60 ;;
  kill) end KILL 20 ;;
  restart) end TERM 60; start ;;
  status) status ;;
  *) usage ;;
esac
