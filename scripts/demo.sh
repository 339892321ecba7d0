#!/bin/sh
# npm run demo: set up what is missing, then tell the story.
cd "$(dirname -- "$0")/.." || exit 1
sh scripts/setup.sh demo || exit $?
exec node --import tsx demo/main.ts "$@"
