#!/bin/sh
# Makes prebuilds/, the native part of the npm package: for each target linux-ARCH-LIBC a folder with the addons and the
# programs, and bpf/ with the kernel objects, which suit every target (docs/decisions/0042-…). Works in build/prebuild/.
#   sh scripts/prebuild.sh              all four targets
#   sh scripts/prebuild.sh TARGET...    these targets
#   sh scripts/prebuild.sh host         the target of this machine, copied from build/; needs only binutils
# Debian packages: gcc, gcc-aarch64-linux-gnu, libbpf-dev. musl-dev is downloaded with apt-get and not installed.
set -eu
cd "$(dirname -- "$0")/.."
root=$PWD
work=$root/build/prebuild
targets='linux-x64-glibc linux-x64-musl linux-arm64-glibc linux-arm64-musl'
# The newest version of glibc's symbols that a target linux-ARCH-glibc can need.
glibc_most=2.34

say() { printf 'prebuild: %s\n' "$*"; }
fail() {
  printf 'prebuild: %s\n' "$*" >&2
  exit 1
}

# Sets the variables of a target: triplet of the compiler, architecture as Debian has it, libc.
read_target() {
  case $1 in
    linux-x64-*) triplet=x86_64-linux-gnu debian=amd64 options= ;;
    # musl has no __getauxval, which libgcc's choice of atomics at run time calls.
    linux-arm64-*) triplet=aarch64-linux-gnu debian=arm64 options=-mno-outline-atomics ;;
    *) fail "unknown target $1; there are: $targets" ;;
  esac
  libc=${1##*-}
  command -v "$triplet-gcc" >/dev/null || fail "no compiler for $1: apt-get install gcc-$(echo $triplet | tr _ -)"
  [ -e /usr/include/bpf/libbpf.h ] || fail 'no headers of libbpf: apt-get install libbpf-dev'
}

# Downloads the Debian packages musl and musl-dev of an architecture, and unpacks them into $work/musl-ARCHITECTURE.
fetch_musl() {
  folder=$work/musl-$debian
  [ ! -e "$folder/.whole" ] || return 0
  say "downloading musl-dev for $debian"
  apt=$work/apt-$debian
  rm -rf "$folder" "$apt"
  mkdir -p "$folder" "$apt/lists/partial" "$apt/archives/partial"
  : >"$apt/status"
  cat >"$apt/conf" <<END
#clear APT::Architectures;
APT::Architecture "$debian";
APT::Architectures { "$debian"; };
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
END
  # A source of other architectures may fail; then the download says what is missing.
  (
    export APT_CONFIG="$apt/conf"
    cd "$folder"
    apt-get -qq update || true
    apt-get -qq download musl musl-dev
  ) || fail "musl-dev for $debian cannot be downloaded: see above"
  for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$folder"; done
  # The linker finds libc.so beside libc.a, and takes it for what is shared.
  ln -s "$folder"/lib/*-linux-musl/libc.so "$(echo "$folder"/usr/lib/*-linux-musl)/libc.so"
  : >"$folder/.whole"
}

# Writes a compiler for the target: $work/TARGET/cc.
make_compiler() {
  here=$work/$1
  rm -rf "$here"
  mkdir -p "$here/include" "$here/lib"
  ln -s /usr/include/bpf "$here/include/bpf"
  command="$triplet-gcc"
  static=
  if [ "$libc" = musl ]; then
    fetch_musl
    for each in linux asm-generic; do ln -s /usr/include/$each "$here/include/$each"; done
    for each in "/usr/$triplet/include/asm" "/usr/include/$triplet/asm"; do
      [ -e "$here/include/asm" ] || [ ! -d "$each" ] || ln -s "$each" "$here/include/asm"
    done
    sed "s|/usr/|$folder/usr/|g" "$folder"/usr/lib/*-linux-musl/musl-gcc.specs >"$here/specs"
    command="$command -specs $here/specs $options"
    static=-static
  fi
  cat >"$here/cc" <<END
#!/bin/sh
kind=$static
for each; do [ "\$each" != -shared ] || kind=; done
exec $command -idirafter $here/include "\$@" -L $here/lib \$kind
END
  chmod +x "$here/cc"
}

# The addon bpf needs libbpf.so.1 of the machine on which it runs. It is linked with a library of this name and no code.
make_stub() {
  "$here/cc" -std=gnu11 -I "$(node_include)" -fPIC -c src/native/bpf/bpf.c -o "$here/bpf.o"
  "$triplet-nm" -u "$here/bpf.o" | sed -nE 's/^ *U ((lib)?bpf_.*|ring_buffer__.*)$/void \1(void) {}/p' >"$here/stub.c"
  "$here/cc" -shared -fPIC -nostdlib -Wl,-soname,libbpf.so.1 "$here/stub.c" -o "$here/lib/libbpf.so"
}

node_include() {
  include=$(node -p 'require("path").resolve(process.execPath, "../../include/node")')
  [ -f "$include/uv.h" ] || fail "no headers of Node.js in $include: install Node.js with its headers"
  printf %s "$include"
}

# Every symbol that a file takes from the C library must be there: in musl's, or in glibc up to $glibc_most.
check_symbols() {
  for file in "$1"/*; do
    if [ "$libc" = glibc ]; then
      newest=$("$triplet-objdump" -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
      [ "$(printf '%s\nGLIBC_%s\n' "$newest" $glibc_most | sort -V | tail -n 1)" = GLIBC_$glibc_most ] ||
        fail "$file needs $newest, and the oldest glibc that is supported is $glibc_most"
    else
      case $file in *.node) ;; *) continue ;; esac
      "$triplet-nm" -D --defined-only "$folder"/lib/*-linux-musl/libc.so | awk '{ print $NF }' | sort >"$here/musl"
      "$triplet-nm" -Du "$file" | awk '$1 == "U" { print $2 }' | sort >"$here/needed"
      lost=$(comm -13 "$here/musl" "$here/needed" | grep -vE '^(napi_|uv_|bpf_|libbpf_|ring_buffer__)' || true)
      [ -z "$lost" ] || fail "$file needs what musl does not have: $lost"
    fi
  done
}

cross() {
  read_target "$1"
  say "building $1"
  # namegate-cni is static, and with musl it has a tenth of the size.
  read_target "${1%-*}-musl"
  make_compiler "${1%-*}-musl"
  static_compiler=$here/cc
  read_target "$1"
  [ "$libc" = musl ] || make_compiler "$1"
  make_stub
  out=$here/out
  CC=$here/cc NAMEGATE_STATIC_CC=$static_compiler NAMEGATE_OUT=$out sh scripts/build-native.sh >"$here/log" 2>&1 || {
    cat "$here/log" >&2
    fail "$1 was not built: see above"
  }
  "$triplet-strip" --strip-unneeded "$out"/*
  check_symbols "$out"
  put "$1" "$out"
}

# The machine's own target, as it was built for the checkout.
host() {
  [ -e build/Release/bpf.node ] && [ -e build/namegate.bpf.o ] || fail 'the native part is not built: npm run build'
  # As in src/native/prebuilt.ts.
  target=linux-$(node -p 'process.arch')-glibc
  ! head -c 4096 "$(node -p 'process.execPath')" | grep -q ld-musl- || target=${target%glibc}musl
  rm -rf "$work/host"
  mkdir -p "$work"
  cp -R build/Release "$work/host"
  strip --strip-unneeded "$work"/host/*
  put "$target" "$work/host"
}

# $1: target, $2: folder with its files. They take their place at once.
put() {
  rm -rf "prebuilds/$1"
  mkdir -p prebuilds
  mv "$2" "prebuilds/$1"
}

# The kernel objects without the debug sections of the compiler; BTF, which the kernel reads, stays.
kernel_objects() {
  for object in namegate.bpf.o namegate-gate.bpf.o; do
    [ -e build/$object ] || fail "build/$object is not built: npm run build"
  done
  rm -rf prebuilds/bpf
  mkdir -p prebuilds/bpf
  cp build/namegate.bpf.o build/namegate-gate.bpf.o prebuilds/bpf/
  ! command -v llvm-strip >/dev/null || llvm-strip -g prebuilds/bpf/*.o
}

[ $# -gt 0 ] || set -- $targets
for target; do
  case $target in host) host ;; *) cross "$target" ;; esac
done
kernel_objects
say "made $(ls prebuilds | tr '\n' ' ')"
