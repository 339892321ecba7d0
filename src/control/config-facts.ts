// Facts that configuration makes, kept by key so that a new version of a source is applied as the
// difference to the old one: what stays the same causes nothing (invariant 8).

import { formatPrefix, type Prefix } from '../core/ip.ts'
import type { CoreState } from './core-state.ts'

export interface WantedFact {
  readonly prefix: Prefix
  readonly kind: number
  readonly owner: string
  readonly labels: readonly string[]
}

interface HeldFact {
  readonly fact: number
  readonly owner: number
}

export class ConfigFacts {
  readonly #core: CoreState
  readonly #held = new Map<string, HeldFact>()
  #refused = 0

  constructor(options: { readonly core: CoreState }) {
    this.#core = options.core
  }

  /** Facts that found no room. */
  get refused(): number {
    return this.#refused
  }

  /** Makes the facts of this source exactly the wanted ones: additions first, then removals. */
  apply(wanted: Iterable<WantedFact>): void {
    const { ipcache, owners } = this.#core
    const gone = new Map(this.#held)
    for (const key of this.add(wanted)) gone.delete(key)
    for (const [key, { fact, owner }] of gone) {
      ipcache.removeFact(fact)
      owners.release(owner)
      this.#held.delete(key)
    }
  }

  /** Adds what is wanted and not there, and leaves the rest; returns the keys of the wanted ones. */
  add(wanted: Iterable<WantedFact>): ReadonlySet<string> {
    const { ipcache, labelSets, owners } = this.#core
    const keys = new Set<string>()
    for (const fact of wanted) {
      const key = `${fact.kind} ${fact.owner} ${formatPrefix(fact.prefix)}`
      const set = labelSets.intern(fact.labels)
      const known = this.#held.get(key)
      keys.add(key)
      if (known !== undefined) {
        ipcache.changeFact(known.fact, set)
        continue
      }
      const owner = owners.hold(fact.owner)
      const row = ipcache.addPrefixFact(fact.prefix, fact.kind, owner, set)
      if (row === 0) {
        this.#refused++
        owners.release(owner)
      } else {
        this.#held.set(key, { fact: row, owner })
      }
    }
    return keys
  }
}
