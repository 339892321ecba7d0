// What the files that the configured paths name look like now. Which files those are is decided in one place
// (config/files.ts), so that `policy check` and the daemon never see different ones. Links are followed, so
// a swapped link shows as a changed file.

import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { PlacedPath } from '../../config/config.ts'
import { findPolicyFiles } from '../../config/files.ts'
import type { FileSighting, Scan } from './settled-files.ts'

/** The link that a mounted ConfigMap or Secret swaps. */
const MOUNTED_DATA = '..data'

/** Files between two looks at the clock. */
const PER_LOOK = 64

/** One look at all files: which there are is found out at once, what they look like in as many steps as it takes. */
export class FileScan implements Scan {
  readonly files = new Map<string, FileSighting>()
  /** Configured paths that are not there. */
  readonly missing: readonly string[]
  /** What is wrong with the configured paths: at the start an error, not an empty policy. */
  readonly faults: readonly Fault[]
  /** Folders that nothing is known of now. */
  readonly #lost: readonly string[]
  readonly #found: readonly string[]
  /** How many of those were looked at. */
  #looked = 0
  readonly #places = new Map<string, string>()

  /** `wasFile`: whether a path was read as a file before. One in whose place a folder is now counts as changed, not as gone. */
  constructor(paths: readonly PlacedPath[], wasFile: (path: string) => boolean = () => false) {
    const all = paths.map((placed) => ({ placed, ...findPolicyFiles(placed.path) }))
    const isMissing = ({ placed: { path }, unread }: (typeof all)[number]): boolean =>
      unread.includes(path) && !existsSync(path)
    this.#lost = all.flatMap(({ unread }) => unread)
    this.#found = all.flatMap(({ placed: { path }, files }) =>
      wasFile(path) && !files.includes(path) ? [path, ...files] : files,
    )
    this.missing = all.filter(isMissing).map(({ placed }) => placed.path)
    this.faults = all.flatMap(({ placed, faults }) =>
      this.missing.includes(placed.path) ? [missingFault(placed)] : faults,
    )
  }

  /** Whether there is no folder that nothing is known of now. */
  get isWhole(): boolean {
    return this.#lost.length === 0
  }

  /** Looks at files until the time is over; true when it has looked at all. */
  step(clock: Pick<Clock, 'now'>, until: number): boolean {
    while (this.#looked < this.#found.length) {
      const path = this.#found[this.#looked++] ?? ''
      const sighting = sightingOf(path)
      if (sighting !== undefined) this.files.set(path, sighting)
      if (this.#looked % PER_LOOK === 0 && clock.now() >= until) return false
    }
    return true
  }

  placeOf(folder: string): string {
    const place = this.#places.get(folder) ?? placeOf(folder)
    this.#places.set(folder, place)
    return place
  }

  isDangling(path: string): boolean {
    return !this.files.has(path) && isEntry(path)
  }

  lostFolderOf(path: string): string | undefined {
    if (this.isWhole) return undefined
    return this.#lost.find((folder) => path.startsWith(`${folder}${sep}`))
  }
}

function isEntry(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

function missingFault({ path, position }: PlacedPath): Fault {
  const where = `paths are relative to the folder of ${position.file}`
  return { position, message: `found no file or folder ${path}, expected one (${where})` }
}

/** Another text after every change of the file; undefined when there is none. */
export function signatureOf(path: string): string | undefined {
  return sightingOf(path)?.signature
}

function sightingOf(file: string): FileSighting | undefined {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file)
    return { signature: `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`, empty: size === 0 }
  } catch {
    return undefined
  }
}

function placeOf(folder: string): string {
  return [() => realpathSync(folder), () => readlinkSync(join(folder, MOUNTED_DATA))]
    .map((read) => {
      try {
        return read()
      } catch {
        return ''
      }
    })
    .join('\n')
}
