// Finds the configured files and decides when a change of a file takes effect (docs/spec/semantics 2). A changed file takes effect after
// 100 ms without a further change. An empty or missing file takes effect after 1 s, because editors leave files empty or missing for a
// moment. A file that is missing from a folder was removed. A configured file that is missing has a fault. If a folder was swapped as a
// whole, such as a mounted ConfigMap, its files take effect together. A file in a folder that cannot be read is unchanged.

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

/** How many files are looked at between two looks at the clock. */
const PER_LOOK = 64

interface FileSighting {
  /** Changes with every change of the file. */
  readonly signature: string
  /** True for an empty file and for a link without a target, because an editor or a swap may be at work. */
  readonly isUnfinished: boolean
}

/**
 * One look at all files. The constructor finds the files, and `step` looks at each. Links are followed, so a swapped link is a change.
 * Something else can take the path of a known file, such as a folder or a link without a target. Then the scan still has the file, and
 * reading it is a fault. A new link without a target is such a file, too.
 */
export class FileScan {
  readonly files = new Map<string, FileSighting>()
  /** Configured paths that do not exist. */
  readonly missing: readonly PlacedPath[]
  /** Faults of the configured paths that exist. */
  readonly faults: readonly Fault[]
  /** Folders that cannot be read now. */
  readonly #unreadable: readonly string[]
  readonly #found: readonly string[]
  /** How many files `step` has looked at. */
  #looked = 0
  readonly #places = new Map<string, string>()

  /** `known`: paths that were files before. Paths that are not in a configured path are ignored. */
  constructor(paths: readonly PlacedPath[], known: Iterable<string> = []) {
    const all = paths.map((placed) => ({ placed, ...findPolicyFiles(placed.path) }))
    const found = new Set(all.flatMap(({ files }) => files))
    const isOurs = (file: string): boolean => paths.some(({ path }) => mayHold(path, file))
    const before = [...known]
    const replaced = new Set([
      ...before.filter((path) => !found.has(path) && isOurs(path) && isEntry(path)),
      ...all.flatMap(({ unread }) => unread.filter((path) => isFileLink(path, before))),
    ])
    this.#unreadable = all.flatMap(({ unread }) => unread.filter((path) => !replaced.has(path)))
    this.#found = [...found, ...replaced]
    this.missing = all
      .filter(({ placed: { path }, unread }) => unread.includes(path) && !isEntry(path))
      .map(({ placed }) => placed)
    this.faults = all
      .filter(({ placed }) => !this.missing.includes(placed))
      .flatMap(({ faults }) => faults.filter(({ position }) => !replaced.has(position.file)))
  }

  /** True if every configured path could be read. */
  get isWhole(): boolean {
    return this.#unreadable.length === 0
  }

  /** Looks at files until time `until`. Returns true when all files have been looked at. */
  step(clock: Pick<Clock, 'now'>, until: number): boolean {
    while (this.#looked < this.#found.length) {
      const path = this.#found[this.#looked++] ?? ''
      const sighting = sightingOf(path)
      if (sighting !== undefined) this.files.set(path, sighting)
      if (this.#looked % PER_LOOK === 0 && clock.now() >= until) return false
    }
    return true
  }

  /** Returns a text that names the target of a folder. The text changes when the folder is swapped. */
  placeOf(folder: string): string {
    const place = this.#places.get(folder) ?? placeOf(folder)
    this.#places.set(folder, place)
    return place
  }

  /** True if the path is a link without a target, as in the middle of a swap. */
  isDangling(path: string): boolean {
    return isEntry(path) && !existsSync(path)
  }

  /** Returns the folder above a file that cannot be read, or undefined. Below such a folder, the state of a file is unknown. */
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
  /** The target of the folder when the file was accepted. */
  place: string
}

/** Signature of a missing file. */
const GONE = ''
/** A signature that no file has. */
const FORGOTTEN = 'forgotten'

/** Compares each scan with the files that were accepted before. Has no clock of its own. */
export class SettledFiles {
  readonly #configured: ReadonlySet<string>
  readonly #files = new Map<string, Tracked>()
  /** The time of the last change in each folder. */
  readonly #folders = new Map<string, number>()

  constructor(paths: readonly PlacedPath[]) {
    this.#configured = new Set(paths.map(({ path }) => path))
  }

  /** True while a change waits for its quiet time. */
  get unsettled(): boolean {
    for (const file of this.#files.values()) if (file.candidate !== file.accepted) return true
    return false
  }

  /** The known files. */
  paths(): Iterable<string> {
    return this.#files.keys()
  }

  /** Folders of known files that cannot be read. */
  unreadableFolders(scan: FileScan): readonly string[] {
    const folders = new Set<string>()
    for (const path of this.#files.keys()) {
      const folder = scan.unreadableFolderOf(path)
      if (folder !== undefined) folders.add(folder)
    }
    return [...folders]
  }

  /** Accepts all files as they are, without a quiet time. Used at the start. */
  accept(scan: FileScan): void {
    this.#files.clear()
    for (const [path, { signature }] of scan.files) this.#track(scan, path, signature, 0)
    for (const { path } of scan.missing) this.#track(scan, path, GONE, 0)
  }

  /** Makes the next looks report every file again, also unchanged files. */
  forget(): void {
    for (const file of this.#files.values()) file.accepted = FORGOTTEN
  }

  /** Returns the changes whose quiet time is over at time `now` (milliseconds). */
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
      // A configured file that is missing counts as changed, and reading it is a fault.
      const isGone = file.candidate === GONE && !this.#configured.has(path)
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

/** True if a file can come from a configured path: if the file is that path, or a policy file somewhere below that path. */
function mayHold(path: string, file: string): boolean {
  return file === path || (file.startsWith(`${path}${sep}`) && isPolicyFile(file))
}

/** True for a link with the name of a policy file. A link with known files below it is a folder that cannot be read now. */
function isFileLink(path: string, known: readonly string[]): boolean {
  if (!isPolicyFile(path) || known.some((file) => file.startsWith(`${path}${sep}`))) return false
  return statOf(() => lstatSync(path))?.isSymbolicLink() === true
}

/** True if anything has this path, also a link without a target. */
function isEntry(path: string): boolean {
  return statOf(() => lstatSync(path)) !== undefined
}

/** Returns the fault of a configured path that is not there. */
export function missingFault({ path, position }: PlacedPath): Fault {
  const where = `paths are relative to the folder of ${position.file}`
  return { position, message: `found no file or folder ${path}, expected one (${where})` }
}

/** Returns the fault of a configured file that went, or undefined if anything has the path. `list`: the key of its list, if it has one. */
export function goneFault(file: string, list: string | undefined): Fault | undefined {
  if (isEntry(file)) return undefined
  const open = list === 'endpoints' ? ' (then no policy restricts them)' : ''
  const none = list === undefined ? '' : `or write '${list}: []' to remove all its ${list}${open}, `
  const message = `the file is not there, its last good version stays in force: put it back, ${none}or take it out of the configuration and start the daemon again`
  return { position: { file, line: 1, column: 1 }, message }
}

export function unreadableFault(folder: string): Fault {
  const message = 'cannot read this folder any more: the last versions of its files stay in force'
  return { position: { file: folder, line: 1, column: 1 }, message }
}

/** Returns a text that changes with every change of the file, or undefined when nothing has the path. */
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
