#!/bin/sh
# Makes build/namegate_VERSION_ARCH.deb for Debian 12 and newer. The same sources give the same octets. Needs no root.
#   sh scripts/deb.sh [--arch amd64|arm64] [--version VERSION] [--level 0-9] [--out DIR]
# --version: another version, to try an upgrade. --level: of xz; 6 is that of a release, 0 is fast.
# Debian packages: those of scripts/prebuild.sh, xz-utils. npm downloads the Node.js of the package once, into build/deb/.
set -eu
cd "$(dirname -- "$0")/.."
umask 022

# The Node.js that is put into the package (docs/decisions/0045-…), with the SHA-256 of its program.
node_version=24.21.0
node_sum_amd64=7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c
node_sum_arm64=0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584

say() { printf 'deb: %s\n' "$*"; }
fail() {
  printf 'deb: %s\n' "$*" >&2
  exit 1
}

arch=$(dpkg --print-architecture) version='' level=6 out=build
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || fail "$1 needs a value"
  case $1 in
    --arch) arch=$2 ;;
    --version) version=$2 ;;
    --level) level=$2 ;;
    --out) out=$2 ;;
    *) fail "unknown option $1" ;;
  esac
  shift 2
done
case $arch in
  amd64) cpu=x64 triplet=x86_64-linux-gnu sum=$node_sum_amd64 ;;
  arm64) cpu=arm64 triplet=aarch64-linux-gnu sum=$node_sum_arm64 ;;
  *) fail "unknown architecture $arch: there are amd64, arm64" ;;
esac
target=linux-$cpu-glibc
version=${version:-$(node -p 'require("./package.json").version')}
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

# build/deb/node-VERSION-CPU/ with bin/node and LICENSE.
fetch_node() {
  folder=build/deb/node-$node_version-$cpu
  if [ ! -e "$folder/.whole" ]; then
    say "downloading Node.js $node_version for $arch"
    rm -rf "$folder" && mkdir -p "$folder"
    npm pack --silent --pack-destination "$folder" "node-linux-$cpu@$node_version" >/dev/null
    tar -xzf "$folder"/*.tgz -C "$folder" --strip-components=1 package/bin/node package/LICENSE
    rm "$folder"/*.tgz
    echo "$sum  $folder/bin/node" | sha256sum --check --quiet || fail 'Node.js is not the one that is expected'
    "$triplet-strip" --strip-unneeded "$folder/bin/node"
    : >"$folder/.whole"
  fi
  install -D -m 755 "$folder/bin/node" "$tree/usr/lib/namegate/bin/node"
}

# Kilobytes of all files, each rounded up, as Debian policy 5.6.20 has it.
installed_size() {
  find "$tree" -path "$tree/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1024\n' |
    awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }'
}

control_files() {
  mkdir "$tree/DEBIAN"
  sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$(installed_size)/" scripts/deb/control >"$tree/DEBIAN/control"
  for each in postinst prerm postrm; do install -m 755 "scripts/deb/$each" "$tree/DEBIAN/$each"; done
  (cd "$tree" && find etc -type f | LC_ALL=C sort | sed 's|^|/|') >"$tree/DEBIAN/conffiles"
  (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
}

sh scripts/setup.sh build
[ -e "prebuilds/$target" ] || sh scripts/prebuild.sh "$target"
fetch_node
node scripts/deb/tree.mjs "$tree" "$target" "$version" "$folder/LICENSE" >/dev/null
control_files
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
file=$out/namegate_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz "-z$level" --build "$tree" "$file" >/dev/null
say "made $file, $(stat -c %s "$file") octets"
