// Numbers chooses the numbers of label sets. Two kinds of numbers are special after a start (docs/spec/promises "State and restart").
// Numbers that the kernel's maps contained at the start are never given to a set. Numbers of the daemon before are withheld: only the
// label set that had the number can get it again, until `forgetWithheld`. The first new number is above all of these.

import { identity, type Identity } from '../core/ids.ts'
import { FIRST_LOCAL, LAST_LOCAL } from './reserved.ts'

/** A number that the daemon before gave to a label set. */
export interface WithheldNumber {
  readonly id: Identity
  /** The labels of the set as texts, in any order. */
  readonly labels: readonly string[]
}

export interface NumbersOptions {
  /** Numbers of an earlier daemon that kernel maps may still contain. */
  readonly carried: ReadonlySet<Identity>
  /** Default: none. */
  readonly withheld?: readonly WithheldNumber[] | undefined
}

export class Numbers {
  readonly #carried: ReadonlySet<Identity>
  readonly #withheld = new Map<Identity, WithheldNumber>()
  /** Withheld numbers by the `labelsKey` of their labels. */
  readonly #withheldOf = new Map<string, Identity>()
  #next: number

  constructor({ carried, withheld = [] }: NumbersOptions) {
    this.#carried = carried
    let highest: number = FIRST_LOCAL - 1
    for (const id of carried) highest = Math.max(highest, id)
    for (const number of withheld) {
      this.#withheld.set(number.id, number)
      // Under the present rules, two saved sets can have the same labels (label-rules.ts). Then only one of their numbers is used.
      const key = labelsKey(number.labels)
      if (!this.#withheldOf.has(key)) this.#withheldOf.set(key, number.id)
      highest = Math.max(highest, number.id)
    }
    this.#next = highest >= LAST_LOCAL ? FIRST_LOCAL : highest + 1
  }

  /** The numbers that are withheld now. */
  get withheld(): Iterable<WithheldNumber> {
    return this.#withheld.values()
  }

  /** Returns the labels of a withheld number, or undefined for another number. */
  labelsOf(id: Identity): readonly string[] | undefined {
    return this.#withheld.get(id)?.labels
  }

  /** Returns the number withheld for a set with these labels, or an unused one. Throws when all 2^24 numbers are in use. */
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

  /** Ends the withholding, so that any set can get the remaining numbers. */
  forgetWithheld(): void {
    this.#withheld.clear()
    this.#withheldOf.clear()
  }
}

function labelsKey(labels: readonly string[]): string {
  return [...labels].sort().join('\n')
}
