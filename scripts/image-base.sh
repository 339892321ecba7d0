#!/bin/sh
# Fills a folder with Debian and Node.js: a base of the image without Docker, and a machine on which npm installs namegate.
#   sh scripts/image-base.sh slim FOLDER     what a container needs: Debian without pages for people, and the program node
#   sh scripts/image-base.sh npm FOLDER      also npm of this machine, headers of Node.js, and the certificates that this machine trusts
# Keeps Debian (debootstrap) and Node.js (npm package node-linux-ARCH) in build/oci. Needs root.
set -eu
cd "$(dirname -- "$0")/.."
suite=trixie
node_major=24
work=$PWD/build/oci
debian=$work/$suite
node=$work/node

say() { printf 'image-base: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

get_debian() {
  [ ! -e "$debian" ] || return 0
  for each in debootstrap strip; do command -v $each >/dev/null || fail "$each is missing: apt-get install debootstrap binutils"; done
  say "making Debian $suite (debootstrap)"
  rm -rf "$debian.new"
  mkdir -p "$debian.new"
  # debootstrap mounts /proc; in a mount namespace of its own nothing stays mounted.
  unshare --mount debootstrap --variant=minbase $suite "$debian.new" >"$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    fail "debootstrap failed: see $work/debootstrap.log"
  }
  mv "$debian.new" "$debian"
}

get_node() {
  [ ! -e "$node/bin/node" ] || return 0
  say "downloading Node.js $node_major (npm)"
  rm -rf "$node.new"
  mkdir -p "$node.new"
  (
    cd "$node.new"
    npm pack --silent "node-linux-$(node -p process.arch)@$node_major" >/dev/null
    tar -xzf ./*.tgz --strip-components=1
    rm -f ./*.tgz
  )
  rm -rf "$node"
  mv "$node.new" "$node"
}

# dpkg leaves out pages for people, also of packages that come later. Licences stay.
slim() {
  cp -a "$debian/." "$1"
  rm -rf "$1/usr/share/man" "$1/usr/share/info" "$1/usr/share/locale" "$1/usr/share/lintian"
  find "$1/usr/share/doc" ! -type d ! -name copyright -delete
  for each in doc man info locale lintian; do echo "path-exclude=/usr/share/$each/*"; done >"$1/etc/dpkg/dpkg.cfg.d/slim"
  echo 'path-include=/usr/share/doc/*/copyright' >>"$1/etc/dpkg/dpkg.cfg.d/slim"
  rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/* "$1"/var/cache/ldconfig/* "$1"/var/lib/dpkg/*-old
  rm -f "$1/etc/resolv.conf" "$1/etc/hostname"
  : >"$1/etc/machine-id"
  strip -o "$1/usr/local/bin/node" "$node/bin/node"
  install -D -m 644 "$node/LICENSE" "$1/usr/local/share/doc/node/LICENSE"
}

with_npm() {
  mkdir -p "$1/usr/local/lib/node_modules" "$1/usr/local/etc" "$1/etc/ssl/certs"
  cp -a "$node/include" "$1/usr/local/"
  cp -aL "$(npm root -g 2>/dev/null)/npm" "$1/usr/local/lib/node_modules/"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"
  cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
  echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >"$1/usr/local/etc/npmrc"
}

case ${1:-}:${2:-} in
slim:?* | npm:?*) ;;
*)
  echo 'usage: sh scripts/image-base.sh slim|npm FOLDER' >&2
  exit 2
  ;;
esac
mkdir -p "$work"
get_debian
get_node
slim "$2"
[ "$1" != npm ] || with_npm "$2"
