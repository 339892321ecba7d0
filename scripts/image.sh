#!/bin/sh
# The steps of the Dockerfile, so that the steps also work without Docker.
#   sh scripts/image.sh build-packages     Debian packages that building needs
#   sh scripts/image.sh run-packages       Debian packages that running needs, and the user namegate
#   sh scripts/image.sh build              in a copy of the sources: builds the program
#   sh scripts/image.sh keep               in such a built copy: removes all that the image does not need
set -eu
cd "$(dirname -- "$0")/.."

# Leaves no lists, logs and caches, which differ from day to day.
install() {
  apt-get update
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
  rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/ldconfig/aux-cache \
    /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/alternatives.log /var/log/dpkg.log
}

# The DNS-only form runs as this user. Root needs no capability to write to the folders either.
add_user() {
  echo 'namegate:x:10053:' >>/etc/group
  echo 'namegate:x:10053:10053::/var/lib/namegate:/usr/sbin/nologin' >>/etc/passwd
  for each in /var/lib/namegate /run/namegate; do
    mkdir -p $each
    chown root:namegate $each
    chmod 775 $each
  done
}

# The licences of the packages that are in the bundles.
licences() {
  npm ls --omit=dev --all --parseable 2>/dev/null | tail -n +2 | while read -r package; do
    for text in "$package"/LICEN[CS]E*; do
      if [ -f "$text" ]; then printf '\n== %s\n\n' "${package##*node_modules/}" && cat "$text"; fi
    done
  done
}

# keep_in FOLDER NAME...: removes everything else from the folder.
keep_in() {
  folder=$1
  shift
  for each in "$folder"/* "$folder"/.[!.]*; do
    case " $* " in *" ${each##*/} "*) ;; *) rm -rf "$each" ;; esac
  done
}

case ${1:-} in
build-packages) install clang gcc libc6-dev libbpf-dev linux-libc-dev ;;
# libbpf is for eBPF; nft and ip are for interception, ip also for the address of an explicit listener.
run-packages)
  install libbpf1 iproute2 nftables
  add_user
  ;;
build)
  npm ci --include=dev --no-audit --no-fund --loglevel=error
  npm run build
  strip --strip-unneeded build/Release/*
  licences >LICENSES
  ;;
keep)
  [ ! -e .git ] || { echo 'image: this is a checkout, and not a copy' >&2; exit 1; }
  [ -f dist/main.bundle ] || { echo 'image: sh scripts/image.sh build comes first' >&2; exit 1; }
  keep_in . bin build dist node_modules page scripts package.json LICENSE LICENSES
  keep_in build Release namegate.bpf.o namegate-gate.bpf.o
  # shellcheck disable=SC2046
  keep_in dist $(cd dist && ls -d ./*.bundle ./*.cache | cut -c 3-)
  # The program is one file with its packages; the page's packages go to browsers as files (src/admin/page/files.ts).
  keep_in node_modules preact htm uplot
  keep_in scripts image.sh
  ;;
*)
  echo 'usage: sh scripts/image.sh build-packages|run-packages|build|keep' >&2
  exit 2
  ;;
esac
