# Step 1 of action.yml: finds or builds namegate, and prepares the runner for a sandbox without root.
# Writes the output `namegate`, the path of the program.
set -euo pipefail
root=$(cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

if program=$(command -v namegate); then :; else
  program=$root/bin/namegate
  if [ ! -f "$root/dist/exec.bundle" ]; then
    as_root apt-get -qq update
    as_root apt-get -qq install -y --no-install-recommends gcc libc6-dev linux-libc-dev passt >/dev/null
    (cd "$root" && npm ci --no-audit --no-fund --loglevel=error && sh scripts/setup.sh build)
  fi
fi
if [ "$(id -u)" != 0 ]; then
  command -v pasta >/dev/null || as_root apt-get -qq install -y --no-install-recommends passt >/dev/null
  # Ubuntu 24.04 allows user namespaces only to programs with a profile.
  apparmor=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
  [ ! -e $apparmor ] || [ "$(cat $apparmor)" = 0 ] || echo 0 | as_root tee $apparmor >/dev/null
  [ -w /dev/net/tun ] || as_root chmod 0666 /dev/net/tun
fi
echo "namegate=$program" >>"$GITHUB_OUTPUT"
