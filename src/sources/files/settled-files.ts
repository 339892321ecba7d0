// When a change of a file counts (docs/spec/semantics 2): a changed file once it has been quiet for 100 ms, one that
// became empty (a fault) or vanished only after 1 s unchanged, because editors leave files empty or gone for a moment.
// Where a whole folder was swapped, as a mounted ConfigMap is, all its files count together, removed ones
// too, once none of them moves any more. A file whose folder can't be looked into is as it was. Pure: it is shown what the file system looks like and says what has
// settled.

import { dirname } from 'node:path'

export const QUIET_MS = 100
export const GONE_QUIET_MS = 1000

/** What a look at a file shows; equal signatures mean an unchanged file. */
export interface FileSighting {
  readonly signature: string
  readonly empty: boolean
}

/** What a look at all files shows. */
export interface Scan {
  readonly files: ReadonlyMap<string, FileSighting>
  /** What a folder really is: another text when it was swapped for another one. */
  placeOf(folder: string): string
  /** A link that leads nowhere, as one does in the middle of a swap. */
  isDangling(path: string): boolean
  /** The folder above a file that could not be looked into, so that nothing is known of the file. */
  lostFolderOf(path: string): string | undefined
}

export type Settled =
  | { readonly kind: 'changed'; readonly path: string }
  | { readonly kind: 'removed'; readonly path: string }

interface Tracked {
  readonly folder: string
  accepted: string
  candidate: string
  since: number
  /** What the folder was when the file was accepted. */
  place: string
}

/** Signature of a file that is not there. */
const GONE = ''
/** No file has this one. */
const FORGOTTEN = 'forgotten'

export class SettledFiles {
  readonly #files = new Map<string, Tracked>()
  /** When a file of the folder changed last. */
  readonly #folders = new Map<string, number>()

  /** Whether a change waits to settle. */
  get unsettled(): boolean {
    for (const file of this.#files.values()) if (file.candidate !== file.accepted) return true
    return false
  }

  /** Folders of known files that could not be looked into. */
  lostFolders(scan: Scan): readonly string[] {
    const lost = new Set<string>()
    for (const path of this.#files.keys()) {
      const folder = scan.lostFolderOf(path)
      if (folder !== undefined) lost.add(folder)
    }
    return [...lost]
  }

  /** Takes the files as they are now for settled, as at the start. */
  accept(scan: Scan): void {
    this.#files.clear()
    for (const [path, { signature }] of scan.files) this.#track(scan, path, signature, 0)
  }

  /** Every file, changed or not, is to settle again. */
  forget(): void {
    for (const file of this.#files.values()) file.accepted = FORGOTTEN
  }

  /** Looks at the files at time `now` (milliseconds); returns the changes that have settled by now. */
  look(scan: Scan, now: number): readonly Settled[] {
    for (const path of scan.files.keys()) {
      if (!this.#files.has(path)) this.#track(scan, path, GONE, now)
    }
    const changed: [path: string, file: Tracked][] = []
    for (const [path, file] of this.#files) {
      if (scan.lostFolderOf(path) !== undefined) continue
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

  #track(scan: Scan, path: string, signature: string, since: number): void {
    const folder = dirname(path)
    const place = scan.placeOf(folder)
    this.#files.set(path, { folder, accepted: signature, candidate: signature, since, place })
  }

  #quietAt(scan: Scan, path: string, file: Tracked): number {
    const sighting = scan.files.get(path)
    if (scan.placeOf(file.folder) !== file.place && !scan.isDangling(path)) {
      return (this.#folders.get(file.folder) ?? file.since) + QUIET_MS
    }
    const isLost = sighting === undefined || sighting.empty
    return file.since + (isLost ? GONE_QUIET_MS : QUIET_MS)
  }
}
