#!/bin/sh
# npm test: set up what is missing, then run every test and count. Arguments are paths or parts of paths.
cd "$(dirname -- "$0")/.." || exit 1
case " $* " in
  *' --help '* | *' -h '*) exec node scripts/test.mjs --help ;;
esac
sh scripts/setup.sh test || exit $?
exec node scripts/test.mjs "$@"
