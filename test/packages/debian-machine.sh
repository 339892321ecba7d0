#!/bin/sh
# debian-machine.sh GROUP ROOT FOLDER NETNS RESOLV: boots ROOT, a folder with Debian, with systemd-nspawn in the network namespace NETNS. The
# machine writes its changes to FOLDER. All mounts are in a mount namespace of their own (debian-machine.ts), so they end with the machine.
set -eu
group=$1 root=$2 folder=$3 netns=$4 resolv=$5
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
  [ -e "$hierarchy/cgroup.procs" ] || continue
  mkdir -p "$hierarchy/$group"
  echo 0 >"$hierarchy/$group/cgroup.procs"
done
mkdir -p "$folder/upper" "$folder/work" "$folder/root" "$folder/bpf" "$folder/share"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
# Process 1 of a real machine would mount it. The daemon has no right to do so.
mount -t bpf -o mode=700 bpf "$folder/bpf"
cp "$resolv" "$folder/root/etc/resolv.conf"
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
exec systemd-nspawn --quiet --boot --directory="$folder/root" --machine="$group" --network-namespace-path="/run/netns/$netns" \
  --capability=all --system-call-filter=bpf --bind="$folder/bpf:/sys/fs/bpf" --bind-ro="$folder/share:/mnt" --register=no --keep-unit \
  --resolv-conf=off --timezone=off --link-journal=no --console=read-only
