#!/bin/bash
# Starts a KRaft node from the environment, as the official apache/kafka image does: KAFKA_FOO_BAR=x becomes foo.bar=x
# (__ stands for _, ___ for -). CLUSTER_ID names the cluster; KAFKA_HEAP_OPTS sets the heap; KAFKA_LOG_LEVEL the logging.
set -euo pipefail
PROPERTIES=/etc/kafka/server.properties

: "${KAFKA_NODE_ID:=1}" "${KAFKA_PROCESS_ROLES:=broker,controller}" "${KAFKA_CONTROLLER_LISTENER_NAMES:=CONTROLLER}"
: "${KAFKA_LISTENERS:=PLAINTEXT://0.0.0.0:9092,BROKER://127.0.0.1:9095,CONTROLLER://127.0.0.1:9094}"
: "${KAFKA_ADVERTISED_LISTENERS:=PLAINTEXT://127.0.0.1:9092,BROKER://127.0.0.1:9095}"
: "${KAFKA_INTER_BROKER_LISTENER_NAME:=BROKER}" "${KAFKA_CONTROLLER_QUORUM_VOTERS:=1@127.0.0.1:9094}"
: "${KAFKA_LISTENER_SECURITY_PROTOCOL_MAP:=PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT}"
: "${KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR:=1}" "${KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR:=1}"
: "${KAFKA_TRANSACTION_STATE_LOG_MIN_ISR:=1}" "${KAFKA_LOG_DIRS:=/var/lib/kafka/data}"
HEAP=${KAFKA_HEAP_OPTS:--Xmx512m}
LEVEL=${KAFKA_LOG_LEVEL:-info}

for name in ${!KAFKA_*}; do
  case $name in KAFKA_HEAP_OPTS | KAFKA_LOG_LEVEL | KAFKA_OPTS | KAFKA_LOG4J_*) continue ;; esac
  key=$(printf '%s' "${name#KAFKA_}" | sed -e 's/___/\x01/g' -e 's/__/\x02/g' -e 's/_/./g' -e 's/\x01/-/g' -e 's/\x02/_/g')
  echo "${key,,}=${!name}"
done > "$PROPERTIES"

run() { exec java "$@"; }
(run -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '/opt/kafka/libs/*' \
  kafka.tools.StorageTool format --ignore-formatted -t "${CLUSTER_ID:-MkU3OEVBNTcwNTJENDM2Qk}" -c "$PROPERTIES")
# shellcheck disable=SC2086 # the heap options are words
run $HEAP -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.logFile=System.out \
  "-Dorg.slf4j.simpleLogger.defaultLogLevel=$LEVEL" -cp '/opt/kafka/libs/*' kafka.Kafka "$PROPERTIES"
