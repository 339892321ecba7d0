#!/bin/sh
# npm runs this in the clone that it makes for `npm i git+URL`: builds the program, and the native part for this machine alone. Then
# npm packs the clone as package.json says. Does nothing in a checkout, where `npm run build` builds.
set -eu
cd "$(dirname -- "$0")/.."
# npm sets it in such a clone, so that no clone prepares itself twice.
[ -n "${_PACOTE_NO_PREPARE_-}" ] || exit 0
sh scripts/setup.sh build
sh scripts/prebuild.sh host
