// This file finds and makes the pin directory, and mounts bpffs for it. A pin outlives the process that made it, and so does
// enforcement.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  type Dirent,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { dottedName, USUAL_BPFFS } from '../../../core/pin-path.ts'
import { messageOf, UnavailableError } from '../../../core/errors.ts'
import { errnoName, type Posix } from '../../../native/native.ts'
import { LAYOUT_VERSION } from './layout.ts'

const BPF_FS_MAGIC = 0xcafe4a11
/** The folder of links in the folder of a layout. */
export const LINKS = 'links'

/** The folder in which the maps of this layout are pinned. */
export function pinDirectory(pinPath: string): string {
  return layoutDirectory(pinPath, LAYOUT_VERSION)
}

/** The folder in which the maps of a given layout are pinned. */
export function layoutDirectory(pinPath: string, layout: number): string {
  return join(pinPath, `v${layout}`)
}

/** The folder in which the links of cgroup programs are pinned. */
export function linkDirectory(pinPath: string): string {
  return join(pinDirectory(pinPath), LINKS)
}

/**
 * Throws UnavailableError if a folder name inside the bpffs has a dot. Without this check the kernel would report only EPERM.
 * Nothing has been made at this point.
 */
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

/** Makes the directories. Mounts bpffs at its usual place if nothing is mounted there. */
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

/** Removes the directories if nothing is pinned in them, such as after a start that was refused. */
export function removeEmptyPinDirectory(pinPath: string): void {
  try {
    // A daemon without cgroups has an empty folder for links beside its maps.
    if (readdirSync(pinDirectory(pinPath)).some((name) => name !== LINKS)) return
    for (const folder of [linkDirectory(pinPath), pinDirectory(pinPath), pinPath]) rmdirSync(folder)
  } catch {
    // A folder is absent, or has pins.
  }
}

function mountFor(posix: Posix, pinPath: string): void {
  const usual = pinPath.startsWith(`${USUAL_BPFFS}/`)
  const result = usual ? posix.mountBpf(USUAL_BPFFS) : 0
  if (result < 0 || !isBpffs(pinPath)) {
    const reason = result < 0 ? `: mount gave ${errnoName(result)}` : ''
    // A mount at another place would hide the files there.
    const remedy = usual
      ? `as root, mount -t bpf bpf ${USUAL_BPFFS}`
      : `give a datapath.ebpf.pin-path below ${USUAL_BPFFS}`
    throw new UnavailableError(
      `Cannot pin maps in ${pinPath}: no bpffs is mounted there${reason}: ${remedy}`,
    )
  }
}

/** True if the nearest existing folder is in a bpffs. */
function isBpffs(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      return statfsSync(folder).type === BPF_FS_MAGIC
    } catch {
      if (folder === dirname(folder)) return false
    }
  }
}

/** The directories in every bpffs of this mount namespace that are named like a layout. */
export function* pinDirectoriesOfAll(): Generator<string, void> {
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, folder = '', type] = line.split(' ')
    if (type === 'bpf') yield* layoutsBelow(folder)
  }
}

function* layoutsBelow(folder: string): Generator<string, void> {
  for (const entry of entriesOf(folder)) {
    if (!entry.isDirectory()) continue
    const path = join(folder, entry.name)
    if (/^v\d+$/.test(entry.name)) yield path
    else yield* layoutsBelow(path)
  }
}

/** Returns nothing if another process has removed the folder, or if only another user can read it. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
