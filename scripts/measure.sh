#!/bin/sh
# npm run bench, npm run fuzz: test/KIND/main.ts when there is one, else every test/KIND/*.KIND.ts, one process after
# the other; arguments choose by name.
kind=$1
shift
cd "$(dirname -- "$0")/.." || exit 1
sh scripts/setup.sh test || exit $?
if [ -f "test/$kind/main.ts" ]; then exec node --expose-gc --import tsx "test/$kind/main.ts" "$@"; fi
status=0
for file in test/"$kind"/*."$kind".ts; do
  [ -f "$file" ] || { printf '%s: nothing in test/%s yet\n' "$kind" "$kind" >&2; exit 1; }
  if [ $# -gt 0 ]; then
    chosen=
    for part in "$@"; do case $file in *"$part"*) chosen=yes ;; esac; done
    [ -n "$chosen" ] || continue
  fi
  printf '%s\n' "-- $file"
  node --expose-gc --import tsx "$file" || status=1
done
exit $status
