// Which configured files there are, and when a change of one counts (docs/spec/semantics 2): a changed file after 100 ms without a
// further change, an empty or missing file after 1 s, because editors leave files empty or missing for a moment. Files of a
// folder that was swapped as a whole, such as a mounted ConfigMap, count together. A file in an unreadable folder is unchanged.

import { existsSync, lstatSync, readlinkSync, realpathSync, statSync, type Stats } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { PlacedPath } from '../../config/config.ts'
import { findPolicyFiles, isPolicyFile } from '../../config/files.ts'
import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'

export const QUIET_MS = 100
export const GONE_QUIET_MS = 1000

/** The link that a mounted ConfigMap or Secret swaps. */
const MOUNTED_DATA = '..data'

/** Files between two looks at the clock. */
const PER_LOOK = 64

interface FileSighting {
  /** Equal signatures mean an unchanged file. */
  readonly signature: string
  /** An empty file, or a link without a target: an editor or a swap may be at work. */
  readonly isUnfinished: boolean
}

/**
 * One look at all files: the constructor finds them, `step` looks at each. Links are followed, so a swapped link is a change.
 * A known file in whose place something else stands (a folder, a link that leads nowhere) is still found: reading it is a fault.
 */
export class FileScan {
  readonly files = new Map<string, FileSighting>()
  /** Configured paths that do not exist. */
  readonly missing: readonly string[]
  /** What is wrong with the configured paths: at the start an error, never an empty policy. */
  readonly faults: readonly Fault[]
  /** Folders that can not be read now. */
  readonly #unreadable: readonly string[]
  readonly #found: readonly string[]
  /** How many files `step` has looked at. */
  #looked = 0
  readonly #places = new Map<string, string>()

  /** `known`: paths that were files before. Those outside of the configured paths do not count. */
  constructor(paths: readonly PlacedPath[], known: Iterable<string> = []) {
    const all = paths.map((placed) => ({ placed, ...findPolicyFiles(placed.path) }))
    const found = new Set(all.flatMap(({ files }) => files))
    const isOurs = (file: string): boolean => paths.some(({ path }) => mayHold(path, file))
    const replaced = new Set(
      [...known].filter((path) => !found.has(path) && isOurs(path) && isEntry(path)),
    )
    this.#unreadable = all.flatMap(({ unread }) => unread.filter((path) => !replaced.has(path)))
    this.#found = [...found, ...replaced]
    this.missing = all
      .filter(({ placed: { path }, unread }) => unread.includes(path) && !isEntry(path))
      .map(({ placed }) => placed.path)
    this.faults = all.flatMap(({ placed, faults }) =>
      this.missing.includes(placed.path)
        ? [missingFault(placed)]
        : faults.filter(({ position }) => !replaced.has(position.file)),
    )
  }

  /** Whether every configured path could be read. */
  get isWhole(): boolean {
    return this.#unreadable.length === 0
  }

  /** Looks at files until the time is over; true once all are looked at. */
  step(clock: Pick<Clock, 'now'>, until: number): boolean {
    while (this.#looked < this.#found.length) {
      const path = this.#found[this.#looked++] ?? ''
      const sighting = sightingOf(path)
      if (sighting !== undefined) this.files.set(path, sighting)
      if (this.#looked % PER_LOOK === 0 && clock.now() >= until) return false
    }
    return true
  }

  /** What a folder resolves to: another text after the folder was swapped. */
  placeOf(folder: string): string {
    const place = this.#places.get(folder) ?? placeOf(folder)
    this.#places.set(folder, place)
    return place
  }

  /** Whether the path is a link without a target, as in the middle of a swap. */
  isDangling(path: string): boolean {
    return isEntry(path) && !existsSync(path)
  }

  /** The folder above a file that can not be read, so that the state of the file is unknown. */
  unreadableFolderOf(path: string): string | undefined {
    if (this.isWhole) return undefined
    return this.#unreadable.find((folder) => path.startsWith(`${folder}${sep}`))
  }
}

export type Settled =
  | { readonly kind: 'changed'; readonly path: string }
  | { readonly kind: 'removed'; readonly path: string }

interface Tracked {
  readonly folder: string
  accepted: string
  candidate: string
  since: number
  /** What the folder resolved to when the file was accepted. */
  place: string
}

/** Signature of a missing file. */
const GONE = ''
/** A signature that no file has. */
const FORGOTTEN = 'forgotten'

/** Compares each scan with what was accepted before. Pure: it reads the scan and the time that it is given. */
export class SettledFiles {
  readonly #files = new Map<string, Tracked>()
  /** When a file of the folder changed last. */
  readonly #folders = new Map<string, number>()

  /** Whether a change waits to settle. */
  get unsettled(): boolean {
    for (const file of this.#files.values()) if (file.candidate !== file.accepted) return true
    return false
  }

  /** The known files. */
  paths(): Iterable<string> {
    return this.#files.keys()
  }

  /** Folders of known files that can not be read. */
  unreadableFolders(scan: FileScan): readonly string[] {
    const folders = new Set<string>()
    for (const path of this.#files.keys()) {
      const folder = scan.unreadableFolderOf(path)
      if (folder !== undefined) folders.add(folder)
    }
    return [...folders]
  }

  /** Takes the files as they are now for settled, as at the start. */
  accept(scan: FileScan): void {
    this.#files.clear()
    for (const [path, { signature }] of scan.files) this.#track(scan, path, signature, 0)
  }

  /** Every file has to settle again, changed or not. */
  forget(): void {
    for (const file of this.#files.values()) file.accepted = FORGOTTEN
  }

  /** Returns the changes that have settled at time `now` (milliseconds). */
  look(scan: FileScan, now: number): readonly Settled[] {
    for (const path of scan.files.keys()) {
      if (!this.#files.has(path)) this.#track(scan, path, GONE, now)
    }
    const changed: [path: string, file: Tracked][] = []
    for (const [path, file] of this.#files) {
      if (scan.unreadableFolderOf(path) !== undefined) continue
      const signature = scan.files.get(path)?.signature ?? GONE
      if (signature !== file.candidate) {
        file.candidate = signature
        file.since = now
        this.#folders.set(file.folder, now)
      }
      if (signature === file.accepted) file.place = scan.placeOf(file.folder)
      else changed.push([path, file])
    }
    const settled: Settled[] = []
    for (const [path, file] of changed) {
      if (now < this.#quietAt(scan, path, file)) continue
      file.place = scan.placeOf(file.folder)
      file.accepted = file.candidate
      const isGone = file.candidate === GONE
      if (isGone) this.#files.delete(path)
      settled.push({ kind: isGone ? 'removed' : 'changed', path })
    }
    return settled
  }

  #track(scan: FileScan, path: string, signature: string, since: number): void {
    const folder = dirname(path)
    const place = scan.placeOf(folder)
    this.#files.set(path, { folder, accepted: signature, candidate: signature, since, place })
  }

  #quietAt(scan: FileScan, path: string, file: Tracked): number {
    const sighting = scan.files.get(path)
    if (scan.placeOf(file.folder) !== file.place && !scan.isDangling(path)) {
      return (this.#folders.get(file.folder) ?? file.since) + QUIET_MS
    }
    const isUnfinished = sighting === undefined || sighting.isUnfinished
    return file.since + (isUnfinished ? GONE_QUIET_MS : QUIET_MS)
  }
}

/** Whether a file may come from a configured path: the file itself, or a policy file somewhere in a folder. */
function mayHold(path: string, file: string): boolean {
  return file === path || (file.startsWith(`${path}${sep}`) && isPolicyFile(file))
}

/** Whether anything has this path, a link without a target included. */
function isEntry(path: string): boolean {
  return statOf(() => lstatSync(path)) !== undefined
}

function missingFault({ path, position }: PlacedPath): Fault {
  const where = `paths are relative to the folder of ${position.file}`
  return { position, message: `found no file or folder ${path}, expected one (${where})` }
}

/** Another text after every change of the file; undefined when nothing has its path. */
export function signatureOf(path: string): string | undefined {
  return sightingOf(path)?.signature
}

function sightingOf(file: string): FileSighting | undefined {
  const target = statOf(() => statSync(file))
  if (target !== undefined) return { signature: signature(target), isUnfinished: target.size === 0 }
  const link = statOf(() => lstatSync(file))
  return link && { signature: `link:${signature(link)}`, isUnfinished: true }
}

function statOf(look: () => Stats): Stats | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

function signature({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`
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
