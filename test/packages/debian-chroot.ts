// The trial of a Debian package in a chroot without systemd, as in the making of an image: dpkg installs, upgrades and purges it, and the
// program runs.

import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../support/labs/lab-process.ts'
import type { Packages } from './debian-trial.ts'
import type { Step } from './steps.ts'

const LIMIT_MS = 600_000
/** Arguments: the root, and a folder for its changes. Its result is the last printed line. */
const SCRIPT = [
  'set -eu',
  'mkdir "$1/upper" "$1/work" "$1/root"',
  'mount -t overlay overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$1/root"',
  'mount -t proc proc "$1/root/proc"',
  'mount --rbind /dev "$1/root/dev"',
  'mount --bind "$1/debs" "$1/root/mnt"',
  'exec chroot "$1/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -euc "$2"',
].join('\n')
const APT = 'apt-get install -y -q --no-install-recommends'

export async function tryWithoutSystemd(
  root: string,
  packages: Packages,
  step: Step,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-chroot-'))
  try {
    mkdirSync(join(folder, 'debs'))
    copyFileSync(packages.first, join(folder, 'debs/first.deb'))
    copyFileSync(packages.newer, join(folder, 'debs/newer.deb'))
    await step('chroot without systemd: install, upgrade, purge', async () => {
      const acts = [
        `${APT} /mnt/first.deb >&2`,
        'namegate config check /etc/namegate/namegate.yaml >&2',
        `${APT} /mnt/newer.deb >&2`,
        'namegate version',
        'dpkg -P namegate >&2',
        "find / -xdev -name '*namegate*' -not -path '/var/lib/dpkg/*'",
      ]
      // In a network namespace of its own, so that this machine's rules cannot change.
      const args = ['--mount', '--net', 'sh', '-c', SCRIPT, root, folder, acts.join('\n')]
      const { code, stdout, stderr } = await run('unshare', args, { limitMs: LIMIT_MS })
      assert.equal(code, 0, stderr)
      assert.equal(stdout.trim(), `namegate ${packages.newerVersion}`, stderr)
      return `${stdout.trim()} ran; nothing stays`
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
