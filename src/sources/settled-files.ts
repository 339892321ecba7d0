// When a change of a file counts (SEMANTICS 2): a changed file once it has been quiet for 100 ms, one that
// became empty or vanished only after 1 s unchanged, because editors and ConfigMap swaps leave files empty
// or gone for a moment. Pure: it is shown what the file system looks like and says what has settled.

export const QUIET_MS = 100
export const GONE_QUIET_MS = 1000

/** What a look at a file shows; equal signatures mean an unchanged file. */
export interface FileSighting {
  readonly signature: string
  readonly empty: boolean
}

export type Settled =
  | { readonly kind: 'changed'; readonly path: string }
  | { readonly kind: 'removed'; readonly path: string }

interface Tracked {
  accepted: string
  candidate: string
  since: number
}

/** Signature of a file that is not there. */
const GONE = ''

export class SettledFiles {
  readonly #files = new Map<string, Tracked>()

  /** Whether a change waits to settle. */
  get unsettled(): boolean {
    for (const file of this.#files.values()) if (file.candidate !== file.accepted) return true
    return false
  }

  /** Takes the files as they are now for settled, as at the start. */
  accept(sightings: ReadonlyMap<string, FileSighting>): void {
    this.#files.clear()
    for (const [path, { signature }] of sightings) {
      this.#files.set(path, { accepted: signature, candidate: signature, since: 0 })
    }
  }

  /** Looks at the files at time `now` (milliseconds); returns the changes that have settled by now. */
  look(sightings: ReadonlyMap<string, FileSighting>, now: number): readonly Settled[] {
    for (const path of sightings.keys()) {
      if (!this.#files.has(path))
        this.#files.set(path, { accepted: GONE, candidate: GONE, since: now })
    }
    const settled: Settled[] = []
    for (const [path, file] of this.#files) {
      const sighting = sightings.get(path)
      const signature = sighting?.signature ?? GONE
      if (signature !== file.candidate) {
        file.candidate = signature
        file.since = now
      }
      if (file.candidate === file.accepted) continue
      const quiet = sighting === undefined || sighting.empty ? GONE_QUIET_MS : QUIET_MS
      if (now - file.since < quiet) continue
      file.accepted = file.candidate
      if (sighting === undefined) this.#files.delete(path)
      settled.push({ kind: sighting === undefined ? 'removed' : 'changed', path })
    }
    return settled
  }
}
