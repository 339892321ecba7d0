#!/bin/sh
# Builds the Dockerfile without Docker, as root: build/namegate-VERSION.oci.tar, which docker, podman, skopeo and containerd load.
# buildah runs the steps in a chroot. scripts/image-base.sh makes the bases.
#   sh scripts/image-oci.sh            makes the archive; keeps the bases in build/oci for the next time
#   sh scripts/image-oci.sh --fresh    makes the bases anew, with the packages of today
# Debian packages: buildah, debootstrap.
set -eu
cd "$(dirname -- "$0")/.."
work=$PWD/build/oci
version=$(node -p 'require("./package.json").version')
archive=$PWD/build/namegate-$version.oci.tar
# Every file has the time of the commit, so that two builds of a commit with the same packages differ only in
# V8's code (dist/*.cache) and the name of the container of the build.
time=$(git log -1 --format=%ct)
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs SOURCE_DATE_EPOCH="$time"

say() { printf 'image-oci: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }

# What is left mounted or half-made when this ends early.
clean() {
  code=$?
  trap - EXIT
  buildah rm --all >/dev/null 2>&1 || true
  for mounted in $(awk -v below="$work/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r); do umount "$mounted"; done
  rm -rf "$work/pushed"
  exit $code
}

# base NAME KIND: an image that scripts/image-base.sh fills.
base() {
  [ -z "$(buildah images -q "$1" 2>/dev/null)" ] || return 0
  say "making the image $1"
  container=$(buildah from scratch)
  folder=$(buildah mount "$container")
  sh scripts/image-base.sh "$2" "$folder"
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit -q --timestamp 0 "$container" "$1" >/dev/null
  buildah rm "$container" >/dev/null
}

image() {
  say 'building the Dockerfile'
  buildah bud -q --format docker --timestamp "$time" --layers=false --pull-never \
    --build-arg BUILD_BASE=localhost/namegate-build-base --build-arg BASE=localhost/namegate-base \
    --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$(git rev-parse HEAD)" \
    --label "org.opencontainers.image.created=$(date -u -d "@$time" +%Y-%m-%dT%H:%M:%SZ)" \
    --identity-label=false --tag "namegate:$version" . >"$work/build.log" 2>&1 ||
    { tail -n 20 "$work/build.log" >&2 && fail "the build failed: see $work/build.log"; }
}

for each in buildah debootstrap; do command -v $each >/dev/null || fail "$each is missing: apt-get install buildah debootstrap"; done
[ "$(id -u)" = 0 ] || fail 'debootstrap and chroot need root'
trap clean EXIT
trap 'exit 130' INT TERM HUP
[ "${1:-}" != --fresh ] || rm -rf "$work"
mkdir -p "$work"
base namegate-base slim
base namegate-build-base npm
image
buildah push -q --format v2s2 "namegate:$version" "dir:$work/pushed"
buildah rmi -f "namegate:$version" >/dev/null
node scripts/oci-archive.mjs "$work/pushed" "namegate:$version" "$archive"
