#!/bin/sh
# The steps of the Dockerfile, so that a test can run them in a clean tree without Docker.
#   sh scripts/image.sh build-packages     Debian packages that building needs
#   sh scripts/image.sh run-packages       Debian packages that running needs
#   sh scripts/image.sh build              in a copy of the sources: what the image holds, and nothing else
set -eu
cd "$(dirname -- "$0")/.."

install() {
  apt-get update
  apt-get install -y --no-install-recommends "$@"
  rm -rf /var/lib/apt/lists/*
}

case ${1:-} in
build-packages) install clang gcc libc6-dev libbpf-dev linux-libc-dev ;;
# libbpf's own needs; nft and ip for interception, ip also for the address of an explicit listener.
run-packages) install libbpf1 libelf1 zlib1g iproute2 nftables ;;
build)
  npm ci --include=dev --no-audit --no-fund --loglevel=error
  npm run build
  npm prune --omit=dev --no-audit --no-fund --loglevel=error
  rm -rf test demo docs .git build/.[!.]* build/setup.log
  ;;
*)
  echo 'usage: sh scripts/image.sh build-packages|run-packages|build' >&2
  exit 2
  ;;
esac
