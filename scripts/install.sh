#!/usr/bin/env bash
# usage: install.sh PACKAGE...     installs Debian packages when we are root, quietly unless it fails
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "install: $* missing: install it yourself, or run as root on Debian" >&2
  exit 1
fi
LOG=$(mktemp)
trap 'rm -f "$LOG"' EXIT
echo "install: $*" >&2
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } > "$LOG" 2>&1 < /dev/null; then
  tail -n 30 "$LOG" >&2
  exit 1
fi
