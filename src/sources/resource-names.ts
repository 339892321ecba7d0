// One name, one resource, over all files and the admin API. Knows the names of the list that it checked last, so that
// another version of the list costs what is different in it and not all of it.

import type { Fault, Position } from '../core/errors.ts'
import { difference } from '../core/tables/list-difference.ts'
import { repeatedNames, type ResourceRecord } from '../endpoints/resources.ts'

export class ResourceNames {
  readonly #isTaken: (name: string) => boolean
  #listed: readonly ResourceRecord[] = []
  /** Whether nothing was wrong with it; only then a difference to it says all. */
  #isSound = true
  readonly #byName = new Map<string, ResourceRecord>()

  /** `isTaken`: whether somebody who writes no files has the name. */
  constructor(options: { readonly isTaken: (name: string) => boolean }) {
    this.#isTaken = options.isTaken
  }

  /** Of the list that was checked last. */
  get count(): number {
    return this.#listed.length
  }

  /** What the list that was checked last has under a name. */
  find(name: string): ResourceRecord | undefined {
    return this.#byName.get(name)
  }

  /** Names that are there twice: the later one is the fault, and in any case that of a file. */
  check(listed: readonly ResourceRecord[]): readonly Fault[] {
    const { before, after } = difference(this.#listed, listed)
    if (!this.#isSound) return this.#checkAll(listed)
    for (const { name } of before) this.#byName.delete(name)
    this.#listed = listed
    for (const record of after) {
      if (this.#byName.has(record.name) || this.#isTaken(record.name)) return this.#checkAll(listed)
      this.#byName.set(record.name, record)
    }
    return []
  }

  #checkAll(listed: readonly ResourceRecord[]): readonly Fault[] {
    this.#listed = listed
    this.#byName.clear()
    for (const record of listed) {
      if (!this.#byName.has(record.name)) this.#byName.set(record.name, record)
    }
    const taken = listed.filter(({ name }) => this.#isTaken(name)).map(takenFault)
    const faults = [...taken, ...repeatedNames(listed)]
    this.#isSound = faults.length === 0
    return faults
  }
}

function takenFault({
  name,
  position,
}: {
  readonly name: string
  readonly position: Position
}): Fault {
  const message = `found the name ${name}, which is that of a resource of the admin API: remove it there first`
  return { position, message }
}
