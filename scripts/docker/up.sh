#!/usr/bin/env bash
# usage: up.sh       makes sure that a Docker engine answers, installing and starting one when none does
#
# An engine that is already there is left alone. Ours (Debian's docker.io, root only) keeps all of its files under
# ${MILLRACE_CACHE:-~/.cache/millrace}/docker and touches neither iptables nor ip_forward of the machine: mapped ports
# go through docker-proxy, and containers reach the outside only with --network host. down.sh ends it.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/millrace}/docker

if docker version >/dev/null 2>&1; then
  echo "docker: an engine answers already"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "docker: no engine answers, and only root can start one" >&2
  exit 1
fi
if ! command -v dockerd >/dev/null 2>&1; then
  # The installation must not start the service: we start the engine with our own flags.
  OWN_POLICY=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    OWN_POLICY=1
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
  fi
  "$HERE/../install.sh" docker.io iptables || STATUS=$?
  if [ -n "$OWN_POLICY" ]; then rm -f /usr/sbin/policy-rc.d; fi
  [ "${STATUS:-0}" = 0 ] || exit 1
fi

mkdir -p "$ROOT"
rm -f "$ROOT/dockerd.pid"
setsid nohup dockerd --storage-driver=overlay2 --iptables=false --ip-masq=false --ip-forward=false \
  --data-root="$ROOT/data" --exec-root="$ROOT/exec" --pidfile="$ROOT/dockerd.pid" \
  -H unix:///var/run/docker.sock > "$ROOT/dockerd.log" 2>&1 < /dev/null &
for _ in $(seq 1 60); do
  if docker version >/dev/null 2>&1; then
    echo "docker: engine started (data in $ROOT)"
    exit 0
  fi
  sleep 0.5
done
echo "docker: the engine did not start; the last lines of $ROOT/dockerd.log:" >&2
tail -n 20 "$ROOT/dockerd.log" >&2
exit 1
