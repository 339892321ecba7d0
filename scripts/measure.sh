#!/bin/sh
# npm run bench, bench:peers, conformance, fuzz, mutate: test/KIND/main.ts when there is one, else every test/KIND/*.KIND.ts, one
# process after the other; arguments choose by name, and all of them, options included, go to each file.
kind=$1
shift
cd "$(dirname -- "$0")/.." || exit 1
# What each file says of itself at its top, and the frame of the options.
about() {
  for file in "test/$kind/main.ts" "test/$kind/support/$kind.ts" test/"$kind"/*."$kind".ts; do
    [ -f "$file" ] || continue
    printf '\n%s\n' "$file"
    sed -n -e '/^\/\//!q' -e 's/^\/\/ \{0,1\}/  /p' "$file"
  done
}
case " $* " in
  *' --help '* | *' -h '*)
    printf 'Usage: npm run %s [-- NAME... OPTION...]\nRuns all, or those whose file has a NAME in its own.\n' "$(printf %s "$kind" | tr / :)"
    about
    exit 0
    ;;
esac
sh scripts/setup.sh test || exit $?
if [ -f "test/$kind/main.ts" ]; then exec node --expose-gc --import tsx "test/$kind/main.ts" "$@"; fi
status=0
for file in test/"$kind"/*."$kind".ts; do
  [ -f "$file" ] || { printf '%s: nothing in test/%s yet\n' "$kind" "$kind" >&2; exit 1; }
  named=
  chosen=
  for part in "$@"; do
    case $part in -*) break ;; esac
    named=yes
    case $file in *"$part"*) chosen=yes ;; esac
  done
  [ "$named" = "$chosen" ] || continue
  printf '%s\n' "-- $file"
  node --expose-gc --import tsx "$file" "$@" || status=1
done
exit $status
