// Which number a label set gets. Numbers that the kernel's maps carried at the start are never handed out; the first
// one given is above the highest of them. Numbers that the daemon before gave wait for their own label sets, and for no
// other, until `forgetWithheld` (docs/spec/promises "State and restart").

import { identity, type Identity } from '../core/ids.ts'
import { FIRST_LOCAL, LAST_LOCAL } from './reserved.ts'

/** A number that the daemon before gave to the set of these labels (texts in any order). */
export interface WithheldNumber {
  readonly id: Identity
  readonly labels: readonly string[]
}

export interface NumbersOptions {
  /** Numbers that kernel maps may still carry from an earlier daemon. */
  readonly carried: ReadonlySet<Identity>
  /** Default: none. */
  readonly withheld?: readonly WithheldNumber[] | undefined
}

export class Numbers {
  readonly #carried: ReadonlySet<Identity>
  readonly #withheld = new Map<Identity, WithheldNumber>()
  /** By `labelsKey`. */
  readonly #withheldOf = new Map<string, Identity>()
  #next: number

  constructor({ carried, withheld = [] }: NumbersOptions) {
    this.#carried = carried
    let highest: number = FIRST_LOCAL - 1
    for (const id of carried) highest = Math.max(highest, id)
    for (const number of withheld) {
      this.#withheld.set(number.id, number)
      // Rules that write two sets alike (label-rules.ts): one number goes on, the other is given to nobody.
      const key = labelsKey(number.labels)
      if (!this.#withheldOf.has(key)) this.#withheldOf.set(key, number.id)
      highest = Math.max(highest, number.id)
    }
    this.#next = highest >= LAST_LOCAL ? FIRST_LOCAL : highest + 1
  }

  /** Numbers that wait for their label sets. */
  get withheld(): Iterable<WithheldNumber> {
    return this.#withheld.values()
  }

  /** The labels that a withheld number waits for. */
  labelsOf(id: Identity): readonly string[] | undefined {
    return this.#withheld.get(id)?.labels
  }

  /** The number for the set of these labels: the one that waits for it, else one that `isUsed` does not know. Throws when there is none. */
  take(labels: () => readonly string[], isUsed: (id: Identity) => boolean): Identity {
    if (this.#withheld.size > 0) {
      const key = labelsKey(labels())
      const known = this.#withheldOf.get(key)
      if (known !== undefined) {
        this.#withheldOf.delete(key)
        this.#withheld.delete(known)
        return known
      }
    }
    for (let tried: number = FIRST_LOCAL; tried <= LAST_LOCAL; tried++) {
      const candidate = identity(this.#next)
      this.#next = this.#next >= LAST_LOCAL ? FIRST_LOCAL : this.#next + 1
      if (isUsed(candidate) || this.#carried.has(candidate)) continue
      if (!this.#withheld.has(candidate)) return candidate
    }
    throw new Error('Cannot allocate an identity: all 2^24 numbers are in use')
  }

  /** Numbers that no set claimed may be given to others. */
  forgetWithheld(): void {
    this.#withheld.clear()
    this.#withheldOf.clear()
  }
}

function labelsKey(labels: readonly string[]): string {
  return [...labels].sort().join('\n')
}
