#!/bin/sh
# systemd-init.sh FOLDER REPOSITORY NODE: the first process of a machine for tests (systemd-machine.ts), already in namespaces of its own.
# Makes the machine's root from this one's, writes changes into FOLDER, and becomes systemd. At the first boot, FOLDER/site is copied over
# the root. Whatever has no namespace (most of /proc/sys, /sys) is read-only, as in a container.
set -eu
folder=$1 repository=$2 node=$3 root=$1/root
mkdir -p "$folder/upper" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"

# Of this machine's units and generators, the test machine keeps only the journal.
if [ ! -e "$folder/installed" ]; then
  units=$root/etc/systemd/system generators=$root/etc/systemd/system-generators
  rm -rf "$units"
  mkdir -p "$units" "$generators"
  for each in /lib/systemd/system-generators/*; do ln -sf /dev/null "$generators/${each##*/}"; done
  for each in /lib/systemd/system/*.target.wants/*; do
    case $each in
      *journald.s*) ;;
      *) ln -sf /dev/null "$units/${each##*/}" ;;
    esac
  done
  cp -R "$folder/site/." "$root"
  : >"$folder/installed"
fi

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t bpf -o mode=700 bpf "$root/sys/fs/bpf"

mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"

mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/run/netns" "$root/opt/namegate"
mount --rbind /run/netns "$root/run/netns"
mount --bind "$repository" "$root/opt/namegate"
mount -o remount,bind,ro "$root/opt/namegate"
# Units find Node.js only in /usr/bin and /usr/local/bin.
case $node in
  /usr/bin/* | /usr/local/bin/*) ;;
  *) : >"$root/usr/local/bin/node" && mount --bind "$node" "$root/usr/local/bin/node" ;;
esac

cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
# systemd does this outside of a container. It mounts credentials in another namespace, and they appear here.
mount --make-rshared /
exec env -i container=namegate-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \
  /lib/systemd/systemd --unit=multi-user.target --show-status=no
