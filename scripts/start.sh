#!/bin/sh
# npm start: the daemon with the memory datapath, from config/namegate.yaml. No privileges needed.
cd "$(dirname -- "$0")/.." || exit 1
sh scripts/setup.sh start || exit $?
exec bin/namegate run --config config/namegate.yaml "$@"
