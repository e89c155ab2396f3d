#!/usr/bin/env bash
# usage: down.sh     ends the engine that up.sh started, with its containers; any other engine is left alone
set -euo pipefail
ROOT=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/millrace}/docker

PID=$(cat "$ROOT/dockerd.pid" 2>/dev/null || true)
if [ -z "$PID" ] || [ "$(cat "/proc/$PID/comm" 2>/dev/null)" != dockerd ]; then
  echo "docker: no engine of ours is running"
  exit 0
fi
# Containers that a killed test left behind.
docker ps -aq --filter label=org.testcontainers=true | xargs -r docker rm -f >/dev/null 2>&1 || true
kill "$PID"
for _ in $(seq 1 120); do
  kill -0 "$PID" 2>/dev/null || break
  sleep 0.25
done
if kill -0 "$PID" 2>/dev/null; then
  echo "docker: the engine (pid $PID) did not end" >&2
  exit 1
fi
ip link del docker0 2>/dev/null || true
echo "docker: engine ended"
