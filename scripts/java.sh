#!/usr/bin/env bash
# usage: java.sh NAME FOLDER      prints the class path of a Java program, building it with Maven when its sources have changed
#
# FOLDER holds pom.xml, which builds into the folder that the property build.folder names, and src.
# The build lies in a cache, not in the source tree, in a folder named after NAME and a hash of pom.xml and the sources; after
# the first time nothing is fetched and Maven is not started. MILLRACE_CACHE names another place for the cache.
# A JDK (17 or newer) and Maven are installed by apt when they are missing and we are root.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/millrace}
NAME=$1
FOLDER=$(cd "$2" && pwd)

need() { # need COMMAND DEBIAN_PACKAGE
  command -v "$1" >/dev/null 2>&1 || "$HERE/install.sh" "$2"
}

hash() { (cd "$FOLDER" && find pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16); }

need java openjdk-17-jre-headless
DIR=$CACHE/$NAME-$(hash)
# The folder appears in one rename: half a build is never taken for a whole one.
if [ ! -d "$DIR" ]; then
  need javac openjdk-17-jdk-headless
  need mvn maven
  mkdir -p "$CACHE"
  TMP=$(mktemp -d "$CACHE/$NAME.XXXXXX")
  trap 'rm -rf "$TMP"' EXIT
  echo "$NAME: building with Maven" >&2
  mvn -q -B -Dstyle.color=never -f "$FOLDER/pom.xml" compile -Dbuild.folder="$TMP/build" >&2
  mv -T "$TMP/build" "$DIR" 2>/dev/null || [ -d "$DIR" ] # another run may have been first
fi
echo "$DIR/classes:$DIR/lib/*"
