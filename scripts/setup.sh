#!/bin/sh
# Makes this checkout ready to build, test or show itself: npm packages, Debian packages, native and BPF
# parts, dist/. Each step says in one line what it does and is skipped when there is nothing to do; a second
# run takes well under a second and needs no network. What cannot be done is said, with the way to get it.
#   sh scripts/setup.sh test|demo    everything, Debian packages included when root
#   sh scripts/setup.sh build        what `npm run build` promises: no Debian packages, exit 1 when a build fails
#   sh scripts/setup.sh start        only what the daemon with the memory datapath needs, exit 3 when that cannot be had
set -u
# Where Debian has tools that an ordinary user can run, too.
PATH=$PATH:/usr/sbin:/sbin
purpose=${1:-build}
cd "$(dirname -- "$0")/.." || exit 1
exec </dev/null
mkdir -p build
log=build/setup.log

say() { printf 'setup: %s\n' "$*" >&2; }

# Runs a step quietly; shows the start and the end of its output when it fails.
quietly() {
  "$@" >"$log" 2>&1 && return 0
  { head -n 12 "$log"; tail -n +13 "$log" | tail -n 12; } | sed 's/^/  | /' >&2
  return 1
}

node_version() {
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    say 'Node.js 20.20 or newer and npm are needed, and not found'
    exit 3
  fi
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 20) ? 0 : 1)' && return 0
  say "Node.js 20.20 or newer is needed, found $(node --version)"
  exit 3
}

npm_packages() {
  node scripts/lock-installed.mjs && return 0
  say 'installing packages from package-lock.json (npm ci)'
  quietly npm ci --include=dev --no-audit --no-fund --loglevel=error && return 0
  say 'npm ci failed: see above; it needs the npm registry, or a filled npm cache, once'
  exit 3
}

# What must be there : the Debian package that has it : what is left out without it.
needs_to_start='
cmd:gcc gcc native
file:/usr/include/stdio.h libc6-dev native
file:/usr/include/linux/bpf.h linux-libc-dev native
uv.h libuv1-dev native'
needs_to_build="$needs_to_start
cmd:clang clang bpf
file:/usr/include/bpf/libbpf.h libbpf-dev bpf"
needs_to_show='
cmd:ip iproute2 kernel
cmd:tc iproute2 kernel
cmd:nsenter util-linux kernel
cmd:bpftool bpftool kernel
cmd:nft nftables kernel
cmd:iptables iptables kernel
cmd:dig bind9-dnsutils kernel
cmd:curl curl kernel
cmd:pasta passt kernel
cmd:ps procps kernel
cmd:capsh libcap2-bin kernel
cmd:systemd-socket-activate systemd kernel'

# Prints those lines of stdin whose thing is missing.
missing_of() {
  while read -r probe package use; do
    case $probe in
      cmd:*) command -v "${probe#cmd:}" >/dev/null ;;
      file:*) [ -e "${probe#file:}" ] ;;
      uv.h) has_uv ;;
      *) continue ;;
    esac || printf '%s %s\n' "$package" "$use"
  done
}

# Most builds of Node.js bring the headers of libuv. scripts/build-native.sh looks in the same places.
has_uv() {
  for folder in /usr/include /usr/include/node "$(node -p 'require("path").resolve(process.execPath, "../../include/node")')"; do
    [ -e "$folder/uv.h" ] && return 0
  done
  [ -e "$(npm config get nodedir 2>/dev/null)/include/node/uv.h" ]
}

names_of() { printf '%s\n' "$1" | cut -d' ' -f1 | sort -u | tr '\n' ' ' | sed 's/ $//'; }

debian_packages() {
  case $purpose in
    start) needs=$needs_to_start ;;
    test | demo) needs="$needs_to_build$needs_to_show" ;;
    *) needs=$needs_to_build ;;
  esac
  missing=$(printf '%s\n' "$needs" | missing_of)
  [ -z "$missing" ] && return 0
  case $purpose in
    test | demo) apt_install "$(names_of "$missing")" && missing=$(printf '%s\n' "$needs" | missing_of) ;;
  esac
  [ -z "$missing" ] || left_out
}

apt_install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then return 1; fi
  say "installing Debian packages: $1"
  export DEBIAN_FRONTEND=noninteractive
  options='-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120'
  # shellcheck disable=SC2086
  quietly apt-get $options update
  # shellcheck disable=SC2086
  quietly apt-get $options install -y --no-install-recommends $1
}

# Programs of Debian packages for tests: unpacked into build/tools, so that nothing is installed on the machine.
debian_tools() {
  unpack_prometheus
  unpack_once shells 'tests in zsh and fish' zsh-static zsh-common fish fish-common libpcre2-32-0
  unpack_once mandoc 'the check of man pages' mandoc
}

unpack_prometheus() {
  if [ -x build/tools/prometheus ] && [ -x build/tools/promtool ]; then return 0; fi
  say 'unpacking Debian package prometheus into build/tools'
  folder=$(mktemp -d) || return 0
  if quietly unpack_tools "$folder" prometheus; then
    mkdir -p build/tools
    mv "$folder"/x/usr/bin/prometheus "$folder"/x/usr/bin/promtool build/tools/
  else
    say 'left out: the test with Prometheus (its package cannot be had)'
  fi
  rm -rf "$folder"
}

# unpack_once FOLDER WHAT PACKAGE...: makes build/tools/FOLDER, unless it is there. WHAT is left out without it.
unpack_once() {
  into=build/tools/$1
  what=$2
  shift 2
  if [ -d "$into" ]; then return 0; fi
  say "unpacking Debian packages into $into: $*"
  folder=$(mktemp -d) || return 0
  if quietly unpack_tools "$folder" "$@"; then
    mkdir -p build/tools
    mv "$folder/x" "$into"
  else
    say "left out: $what (the packages cannot be had)"
  fi
  rm -rf "$folder"
}

# The folder x with the files of packages, without pages for people. fish finds its files beside its own folder.
unpack_tools() {
  (
    cd "$1" && shift && apt-get download "$@" && for package in *.deb; do dpkg-deb -x "$package" x || exit 1; done &&
      rm -rf x/usr/share/doc x/usr/share/man x/usr/share/locale &&
      if [ -d x/etc/fish ]; then mkdir -p x/usr/etc && mv x/etc/fish x/usr/etc/; fi
  )
}

left_out() {
  case $missing in *' native'*) say 'left out: the native part (no C compiler)' ;; esac
  case $missing in *' bpf'*) say 'left out: the eBPF datapath (no clang or libbpf)' ;; esac
  case $missing in *' kernel'*) say 'left out: what runs in network namespaces (tools are missing)' ;; esac
  say "  to get it, as root: apt-get install $(names_of "$missing")"
}

# The native and BPF parts, when their sources are newer than the last good build.
native() {
  [ -f scripts/build-native.sh ] || return 0
  stamp=build/.native
  if [ -f $stamp ] && [ -d build/Release ] && [ -z "$(find src scripts/build-native.sh \
    \( -name '*.c' -o -name '*.h' -o -name '*.gyp' -o -name 'build-native.sh' \) \
    -newer $stamp -print -quit)" ]; then return 0; fi
  say 'building the native and BPF parts'
  started=build/.native.started
  : >$started
  if quietly bash scripts/build-native.sh; then mv $started $stamp; return 0; fi
  rm -f $started
  case ${missing:-} in
    *' native'* | *' bpf'*) ;;
    *) say 'left out: native or BPF parts did not build (see above)' ;;
  esac
  failed=1
}

# The addons that every daemon needs. An older build is good enough where there is no compiler.
sockets() {
  [ -f scripts/build-native.sh ] || return 0
  [ -e build/Release/udp.node ] || say 'building the native part'
  NAMEGATE_ONLY='posix tcp udp' quietly sh scripts/build-native.sh && return 0
  [ -e build/Release/posix.node ] && [ -e build/Release/tcp.node ] && [ -e build/Release/udp.node ] && return 0
  debian_packages
  say 'the daemon cannot start without the native part'
  exit 3
}

# Waits for the native part. A daemon that runs for the code of it (scripts/used-code.mjs) needs it.
native_done() {
  [ -z "$building" ] || wait "$building" || failed=1
  building=
}

# dist/ from src/, with what bin/namegate starts from; kept as it was when the sources have type errors.
typescript() {
  stamp=dist/src/.built
  if [ ! -f src/main.ts ]; then return 0; fi
  if [ -f $stamp ] && [ -z "$(find src tsconfig.json tsconfig.build.json package-lock.json scripts/bundle.mjs scripts/used-code.mjs bin/code-cache.cjs \
    \( -name '*.ts' -o -name '*.json' -o -name '*.mjs' -o -name '*.cjs' -o -type d \) -newer $stamp -print -quit)" ]; then return 0; fi
  say 'compiling src/ to dist/'
  # As deep as dist/, so that source maps lead to src/ from there.
  rm -rf dist.new
  mkdir -p dist.new
  : >build/.typescript.started
  # A test checks the types of all files.
  check=
  [ "$purpose" != test ] || check=--noCheck
  # Comments are for readers of src/, and of the declarations.
  # shellcheck disable=SC2086
  if quietly node_modules/.bin/tsc -p tsconfig.build.json --outDir dist.new --declaration false --removeComments $check &&
    quietly node_modules/.bin/tsc -p tsconfig.build.json --outDir dist.new --sourceMap false --emitDeclarationOnly --noCheck &&
    native_done && quietly node scripts/bundle.mjs dist.new; then
    touch -r build/.typescript.started dist.new/src/.built
    rm -rf dist && mv dist.new dist
    return 0
  fi
  say 'left out: dist/ (type errors, see above); bin/namegate runs from the sources'
  failed=1
}

failed=0
node_version
if command -v flock >/dev/null; then
  exec 9>build/.setup.lock
  flock -w 600 9 || say 'another setup is at work for ten minutes now; going on beside it'
fi
# The downloads of one do not wait for those of the other.
if [ "$purpose" != start ]; then
  (log=build/setup.debian.log && debian_packages; printf '%s\n' "$missing" >build/.missing) &
  packages=$!
fi
(npm_packages) || { status=$?; wait; exit $status; }
building=
if [ "$purpose" = start ]; then
  sockets
else
  wait "$packages"
  missing=$(cat build/.missing)
  # None of these needs another until the bundles.
  if [ "$purpose" = test ]; then (log=build/setup.tools.log && debian_tools) & fi
  (log=build/setup.native.log && native && exit "$failed") &
  building=$!
fi
typescript
native_done
wait
[ "$purpose" = build ] && exit $failed
exit 0
