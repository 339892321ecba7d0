// The pin directory: where it is, that bpffs is mounted there, and what its files are called. A pin outlives
// the process that made it; that is what keeps enforcement in force.

import { mkdirSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { errnoName, type Posix } from '../../native/native.ts'
import { LAYOUT_VERSION } from './layout.ts'

const BPF_FS_MAGIC = 0xcafe4a11
const DEFAULT_MOUNT = '/sys/fs/bpf'

/** Where the maps of this layout are pinned. */
export function pinDirectory(pinPath: string): string {
  return layoutDirectory(pinPath, LAYOUT_VERSION)
}

/** Where the maps of some layout are pinned. */
export function layoutDirectory(pinPath: string, layout: number): string {
  return join(pinPath, `v${layout}`)
}

/** Where the links of cgroup programs are pinned. */
export function linkDirectory(pinPath: string): string {
  return join(pinDirectory(pinPath), 'links')
}

/** Makes the directories, mounting bpffs at its usual place when nothing is there yet. */
export function ensurePinDirectory(posix: Posix, pinPath: string): void {
  if (!isBpffs(pinPath)) mountFor(posix, pinPath)
  try {
    mkdirSync(linkDirectory(pinPath), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UnavailableError(
      `Cannot make pin directory ${pinDirectory(pinPath)}: ${messageOf(error)}: run as root`,
    )
  }
}

function mountFor(posix: Posix, pinPath: string): void {
  const usual = pinPath.startsWith(`${DEFAULT_MOUNT}/`)
  const result = usual ? posix.mountBpf(DEFAULT_MOUNT) : 0
  if (result < 0 || !isBpffs(pinPath)) {
    const reason = result < 0 ? `: mount gave ${errnoName(result)}` : ''
    throw new UnavailableError(
      `Cannot pin maps in ${pinPath}: no bpffs is mounted there${reason}: ` +
        `as root, mount -t bpf bpf ${usual ? DEFAULT_MOUNT : dirname(pinPath)}`,
    )
  }
}

/** Whether the nearest folder that exists is in a bpffs. */
function isBpffs(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      return statfsSync(folder).type === BPF_FS_MAGIC
    } catch {
      if (folder === dirname(folder)) return false
    }
  }
}
