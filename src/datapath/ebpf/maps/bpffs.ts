// The pin directory: its path, its names, and the bpffs that is mounted there. A pin outlives the process that made it; so enforcement does.

import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dottedName, USUAL_BPFFS } from '../../../core/pin-path.ts'
import { messageOf, UnavailableError } from '../../../core/errors.ts'
import { errnoName, type Posix } from '../../../native/native.ts'
import { LAYOUT_VERSION } from './layout.ts'

const BPF_FS_MAGIC = 0xcafe4a11

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

/** Throws UnavailableError, before anything is made, when a name inside the bpffs has a dot; there EPERM is all that is said of it. */
function mustHaveNoDot(pinPath: string): void {
  let folder = pinPath
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  if (!isBpffs(folder)) return
  const name = dottedName(pinPath.slice(folder.length))
  if (name === undefined) return
  throw new UnavailableError(
    `Cannot pin maps in ${pinPath}: found ${JSON.stringify(name)}, expected names without a dot: ` +
      'bpffs takes no others: give another datapath.ebpf.pin-path',
  )
}

/** Makes the directories, mounting bpffs at its usual place when nothing is there yet. */
export function ensurePinDirectory(posix: Posix, pinPath: string): void {
  if (!isBpffs(pinPath)) mountFor(posix, pinPath)
  mustHaveNoDot(pinPath)
  try {
    mkdirSync(linkDirectory(pinPath), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UnavailableError(
      `Cannot make pin directory ${pinDirectory(pinPath)}: ${messageOf(error)}: run as root`,
    )
  }
}

function mountFor(posix: Posix, pinPath: string): void {
  const usual = pinPath.startsWith(`${USUAL_BPFFS}/`)
  const result = usual ? posix.mountBpf(USUAL_BPFFS) : 0
  if (result < 0 || !isBpffs(pinPath)) {
    const reason = result < 0 ? `: mount gave ${errnoName(result)}` : ''
    throw new UnavailableError(
      `Cannot pin maps in ${pinPath}: no bpffs is mounted there${reason}: ` +
        `as root, mount -t bpf bpf ${usual ? USUAL_BPFFS : dirname(pinPath)}`,
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
