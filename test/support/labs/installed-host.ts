// A host on which namegate is installed as the documents expect: /etc/namegate is a test's folder, /var/lib/namegate its state,
// /opt/namegate this checkout, namegate is on the PATH, and the working directory is /. Each command has a mount namespace of its own, so
// the machine does not change.

import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CHECKOUT = dirname(dirname(fileURLToPath(new URL('../../../bin/namegate', import.meta.url))))
/** Folders that get a folder for namegate, beside their contents on this machine. */
const ABOVE = ['etc', 'opt', 'var/lib']

const MOUNT = [
  'set -e',
  `for each in ${ABOVE.join(' ')}; do`,
  'mount -t overlay overlay -o "lowerdir=$0/beside/$each:/$each" "/$each"',
  'done',
  'mount --bind "$0" /etc/namegate',
  'mount --bind "$0/state" /var/lib/namegate',
  'mount --bind "$1" /opt/namegate',
  'shift',
  'cd /',
  'exec "$@"',
].join('\n')

/** The words before a command that run it on such a host. `folder` has namegate.yaml. */
export function installedAt(folder: string): readonly string[] {
  for (const each of ABOVE) mkdirSync(join(folder, 'beside', each, 'namegate'), { recursive: true })
  mkdirSync(join(folder, 'state'), { recursive: true })
  return ['unshare', '--mount', 'sh', '-c', MOUNT, folder, CHECKOUT]
}

/** Its PATH, which begins with the programs in `stubs`. */
export function installedPath(stubs: string): string {
  return `${stubs}:${join(CHECKOUT, 'bin')}:${process.env['PATH'] ?? ''}`
}
