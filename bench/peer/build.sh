#!/usr/bin/env bash
# usage: build.sh        prints the class path of the peer, building it if need be, see scripts/java.sh
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$HERE/../../scripts/java.sh" peer "$HERE"
