#!/bin/sh
# npm run check: the one gate. Format, lint with types, types, then every test (the architecture test is one).
cd "$(dirname -- "$0")/.." || exit 1
sh scripts/setup.sh test || exit $?
bin=node_modules/.bin
failed=
step() {
  printf '%s\n' "-- $1"
  shift
  "$@" || failed="$failed $1"
}
step format "$bin/prettier" --check --log-level warn .
step lint "$bin/oxlint" --type-aware --deny-warnings
step types "$bin/tsc" --noEmit -p .
step tests node scripts/test.mjs
[ -z "$failed" ] && exit 0
printf 'check: failed:%s\n' "$failed" | sed "s|$bin/||g" >&2
exit 1
