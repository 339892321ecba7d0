// Gives label sets their numbers. Numbers that the kernel's maps carried at the start are never handed out, and the first new number
// is above the highest of them. Numbers of the daemon before are withheld for their own label sets until `forgetWithheld`
// (docs/spec/promises "State and restart").

import { identity, type Identity } from '../core/ids.ts'
import { FIRST_LOCAL, LAST_LOCAL } from './reserved.ts'

/** A number that the daemon before gave to a set with these labels (texts in any order). */
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
      // Two sets may have the same labels by the present rules (label-rules.ts). Then one number is used and the other is not.
      const key = labelsKey(number.labels)
      if (!this.#withheldOf.has(key)) this.#withheldOf.set(key, number.id)
      highest = Math.max(highest, number.id)
    }
    this.#next = highest >= LAST_LOCAL ? FIRST_LOCAL : highest + 1
  }

  /** Numbers withheld for their label sets. */
  get withheld(): Iterable<WithheldNumber> {
    return this.#withheld.values()
  }

  /** The labels of a withheld number. */
  labelsOf(id: Identity): readonly string[] | undefined {
    return this.#withheld.get(id)?.labels
  }

  /** The number for a set with these labels: the one withheld for it, else an unused one. Throws when all are in use. */
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

  /** Frees the numbers still withheld, so that other sets may get them. */
  forgetWithheld(): void {
    this.#withheld.clear()
    this.#withheldOf.clear()
  }
}

function labelsKey(labels: readonly string[]): string {
  return [...labels].sort().join('\n')
}
