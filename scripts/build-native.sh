#!/bin/sh
# Builds what is not TypeScript into build/: the addons posix.node, conntrack.node, nftables.node, tcp.node, udp.node and bpf.node, the
# programs set-mode, sandbox and namegate-cni, and the kernel object namegate.bpf.o with namegate-gate.bpf.o. Needs no network. Does
# nothing when all is newer than its sources. What can't be built is named in one line each with the remedy; the exit code is 1 when
# anything is missing.
# The addons are plain C against N-API, so a compiler and two headers are enough and node-gyp is not needed.
# NAMEGATE_OUT=FOLDER: the addons and programs into this folder, and no kernel objects (scripts/prebuild.sh).
# NAMEGATE_ONLY='posix tcp udp': only these addons.
# NAMEGATE_SANITIZE=1: instead the addons alone, into build/Sanitize/, with ASan and UBSan, and with control messages as musl declares
# them; loading one of them takes LD_PRELOAD of libasan and NAMEGATE_ADDONS=Sanitize (test/native/sanitize.test.ts).
set -u
cd "$(dirname "$0")/.." || exit 1

out=${NAMEGATE_OUT:-build/Release}
options='-O2'
first= # a header before all others
if [ "${NAMEGATE_SANITIZE:-}" = 1 ]; then
	out=build/Sanitize
	first=test/native/musl-cmsghdr.h
	options="-O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined -include $first"
fi
instead= # when it is another file than the addon's name says
missing=0
mkdir -p "$out"

say() { printf 'build-native: %s\n' "$*"; }
lack() {
	say "missing: $*" >&2
	missing=1
}

# True when $1 is older than any of the other arguments, or not there.
stale() {
	target=$1
	shift
	[ -e "$target" ] || return 0
	for source in "$@"; do
		[ "$source" -nt "$target" ] && return 0
	done
	return 1
}

# Runs a compiler; on success its output takes its place at once, so that no half-made file is ever loaded.
make_file() {
	target=$1
	shift
	say "making $target"
	if "$@" -o "$target.new"; then
		mv -f "$target.new" "$target"
	else
		rm -f "$target.new"
		lack "$target (the compiler's message is above)"
	fi
}

node_headers() {
	for candidate in \
		"$(node -p 'require("path").resolve(process.execPath, "../../include/node")' 2>/dev/null)" \
		/usr/include/node \
		node_modules/node-api-headers/include \
		npm; do
		# npm takes a while, so it is asked last.
		[ "$candidate" != npm ] || candidate=$(npm config get nodedir 2>/dev/null)/include/node
		if [ -f "$candidate/node_api.h" ]; then
			printf '%s' "$candidate"
			return 0
		fi
	done
	return 1
}

wants() { case " ${NAMEGATE_ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }

addon() {
	name=$1
	libraries=$2
	shift 2
	wants "$name" || return 0
	file=${instead:-$(find src/native -name "$name.c")}
	stale "$out/$name.node" "$file" "$@" ${first:+"$first"} scripts/build-native.sh || return 0
	# shellcheck disable=SC2086
	make_file "$out/$name.node" "$compiler" -std=gnu11 $options -g -Wall -Wextra -Werror=implicit-function-declaration -fPIC -shared -fvisibility=hidden \
		-I "$headers" "$file" $libraries
}

has_header() { printf '#include <%s>\n' "$1" | "$compiler" -I "$headers" -E -x c - >/dev/null 2>&1; }

compiler=${CC:-$(command -v gcc || command -v cc || command -v clang)}
if [ -z "$compiler" ]; then
	lack 'a C compiler: apt-get install gcc libc6-dev'
elif ! headers=$(node_headers); then
	lack 'headers of Node-API: npm ci (package node-api-headers)'
else
	addon conntrack '' src/native/addon.h src/native/netfilter/conntrack-message.h src/native/netfilter/netlink.h src/native/netfilter/nftables-table.h
	if has_header uv.h; then
		addon posix '' src/native/addon.h src/native/watch.h src/native/posix/*.h
		addon nftables -lpthread src/native/addon.h src/native/watch.h src/native/netfilter/netlink.h src/native/netfilter/nftables-*.h
		addon tcp '' src/native/addon.h src/native/watch.h src/native/tcp/*.h
		addon udp '' src/native/addon.h src/native/watch.h src/native/udp/*.h
		if [ "$out" = build/Sanitize ]; then
			instead=test/native/planted.c
			addon planted '' src/native/addon.h src/native/watch.h src/native/udp/*.[ch]
			instead=
		fi
	else
		lack 'uv.h: the headers of Node.js itself, or apt-get install libuv1-dev'
	fi
	if ! wants bpf; then
		:
	elif has_header bpf/libbpf.h; then
		addon bpf '-lbpf -lpthread' src/native/addon.h src/native/bpf/*.h
	else
		lack 'libbpf: apt-get install libbpf-dev'
	fi
fi

[ "$out" = build/Sanitize ] && exit $missing
[ -z "${NAMEGATE_ONLY:-}" ] || exit $missing

if [ -n "$compiler" ] && stale "$out/set-mode" src/native/bpf/set-mode.c scripts/build-native.sh; then
	make_file "$out/set-mode" "$compiler" -std=gnu11 -O2 -Wall -Wextra src/native/bpf/set-mode.c
fi
if [ -n "$compiler" ] && stale "$out/sandbox" src/native/sandbox/*.[ch] scripts/build-native.sh; then
	make_file "$out/sandbox" "$compiler" -std=gnu11 -O2 -Wall -Wextra src/native/sandbox/sandbox.c
fi

if [ -n "$compiler" ] && stale "$out/namegate-cni" src/cni/*.[ch] src/native/netfilter/netlink.h scripts/build-native.sh; then
	# Static, because the program runs on the node, beside any C library. NAMEGATE_STATIC_CC: the compiler for it (scripts/prebuild.sh).
	make_file "$out/namegate-cni" "${NAMEGATE_STATIC_CC:-$compiler}" -std=gnu11 -O2 -Wall -Wextra -static src/cni/namegate-cni.c
fi

[ -z "${NAMEGATE_OUT:-}" ] || exit $missing

kernel=src/datapath/ebpf/programs
# $1: source in the kernel folder, $2: object in build/
kernel_object() {
	stale "build/$2" $kernel/*.c $kernel/*.h scripts/build-native.sh || return 0
	if ! clang=$(command -v clang); then
		lack 'clang for the kernel programs: apt-get install clang'
	elif [ ! -e /usr/include/bpf/bpf_helpers.h ]; then
		lack 'libbpf headers for the kernel programs: apt-get install libbpf-dev'
	else
		# Headers of the machine's own architecture: <asm/types.h> is not on the bpf target's path.
		make_file "build/$2" "$clang" -O2 -g -Wall -Werror -target bpf -mcpu=v2 \
			-idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$kernel/$1"
	fi
}
kernel_object namegate.bpf.c namegate.bpf.o
kernel_object gate.bpf.c namegate-gate.bpf.o

exit $missing
