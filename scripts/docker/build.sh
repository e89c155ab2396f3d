#!/usr/bin/env bash
# usage: build.sh    makes the image local/kafka:4.2.0 from Debian packages and Maven Central, without a registry
#
# For machines that cannot pull apache/kafka: the image takes the same KAFKA_* variables. An image of the same recipe
# is not built again. Needs an engine (up.sh), root and debootstrap (installed by apt when missing).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
IMAGE=local/kafka:4.2.0
BASE=local/debian:bookworm

LIB=$("$HERE/../kafka/lib.sh")
RECIPE=$(cat "$HERE/build.sh" "$HERE"/image/* "$HERE/../kafka/pom.xml" | sha256sum | cut -c1-16)
if [ "$(docker image inspect -f '{{index .Config.Labels "millrace.recipe"}}' "$IMAGE" 2>/dev/null)" = "$RECIPE" ]; then
  echo "docker: $IMAGE is there already"
  exit 0
fi

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
if ! docker image inspect "$BASE" >/dev/null 2>&1; then
  if ! command -v debootstrap >/dev/null 2>&1; then
    "$HERE/../install.sh" debootstrap
  fi
  echo "docker: making $BASE with debootstrap" >&2
  debootstrap --variant=minbase --include=bash bookworm "$WORK/rootfs" ${DEBIAN_MIRROR:-} > "$WORK/debootstrap.log" 2>&1 \
    || { tail -n 20 "$WORK/debootstrap.log" >&2; echo "docker: debootstrap failed" >&2; exit 1; }
  tar -C "$WORK/rootfs" -c . | docker import --change 'CMD ["bash"]' - "$BASE" >/dev/null
fi

mkdir -p "$WORK/image/libs"
cp "$HERE"/image/* "$WORK/image/"
cp "$LIB"/*.jar "$WORK/image/libs/"
# Of the jars for tests and benchmarks the broker needs none.
rm -f "$WORK"/image/libs/{kafka-streams-*,rocksdbjni-*}.jar
echo "docker: building $IMAGE" >&2
DOCKER_BUILDKIT=0 docker build -q --network=host --label "millrace.recipe=$RECIPE" -t "$IMAGE" "$WORK/image" >/dev/null
echo "docker: built $IMAGE"
