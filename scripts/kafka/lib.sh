#!/usr/bin/env bash
# usage: lib.sh        prints the folder of the Kafka jars, fetching them from Maven Central when they are not there yet
#
# KAFKA_LIB names a folder of jars that is already there; MILLRACE_CACHE another place for the cache.
# Java (17 or newer) and Maven are installed by apt when they are missing and we are root.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/millrace}
LIB=${KAFKA_LIB:-$CACHE/kafka-4.2.0/lib}

need() { # need COMMAND DEBIAN_PACKAGE
  command -v "$1" >/dev/null 2>&1 || "$HERE/../install.sh" "$2"
}

need java openjdk-17-jre-headless
if [ -n "${KAFKA_LIB:-}" ]; then
  [ -d "$LIB" ] || { echo "kafka: KAFKA_LIB=$LIB is no folder" >&2; exit 1; }
  echo "$LIB"
  exit 0
fi

# The folder is valid for the pom that made it, and appears in one rename: a half download is never taken for a whole one.
if ! cmp -s "$HERE/pom.xml" "$LIB/pom.xml"; then
  need mvn maven
  mkdir -p "$(dirname "$LIB")"
  TMP=$(mktemp -d "$(dirname "$LIB")/fetch.XXXXXX")
  trap 'rm -rf "$TMP"' EXIT
  echo "kafka: fetching the jars from Maven Central into $LIB" >&2
  mvn -q -B -f "$HERE/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$TMP/lib" >&2
  cp "$HERE/pom.xml" "$TMP/lib/pom.xml"
  if [ -d "$LIB" ]; then mv "$LIB" "$TMP/old"; fi
  mv -T "$TMP/lib" "$LIB" 2>/dev/null || cmp -s "$HERE/pom.xml" "$LIB/pom.xml" # another run may have been first
fi
echo "$LIB"
