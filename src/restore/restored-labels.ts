// RestoredLabels holds the labels of addresses that only the kernel knew when the daemon started. They are facts of the owner `restored`.
// Such an address gets those of its former labels that a selector in force gives now. It gets no other label from a selector, because its
// names are unknown. Restart adds the addresses, and Relabel updates them when selectors change. There are few such addresses: the ones
// that were learned in the last moment before the daemon was killed.

import type { Prefix } from '../core/ip.ts'
import { EMPTY_SET } from '../core/labels.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { OWNER_RESTORED } from '../ipcache/facts.ts'

interface Row {
  readonly prefix: Prefix
  /** The labels that the address had under the daemon before. */
  readonly labels: readonly string[]
  /** The row of the fact. 0: no selector in force gives any of the labels, or a table is full. */
  fact: number
}

export class RestoredLabels {
  readonly #core: CoreState
  /** The number of the owner `restored` in OwnerNames. */
  readonly #owner: number
  readonly #rows: Row[] = []

  constructor(core: CoreState, owner: number) {
    this.#core = core
    this.#owner = owner
  }

  get count(): number {
    return this.#rows.length
  }

  /** Adds an address with its former labels. Returns true if the address has at least one of the labels now. */
  add(prefix: Prefix, labels: readonly string[]): boolean {
    const row: Row = { prefix, labels, fact: 0 }
    this.#rows.push(row)
    this.#update(row)
    return row.fact !== 0
  }

  /** Makes the labels of one address agree with the selectors in force. `index` is 0 to `count` - 1. */
  relabel(index: number): void {
    const row = this.#rows[index]
    if (row !== undefined) this.#update(row)
  }

  /** Removes the last `count` addresses with their facts. */
  drop(count: number): void {
    for (const { fact } of this.#rows.splice(-count)) {
      if (fact !== 0) this.#core.ipcache.removeFact(fact)
    }
  }

  #update(row: Row): void {
    const { ipcache, labelSets } = this.#core
    const set = labelSets.intern(row.labels.filter((label) => this.#isGiven(label)))
    const { prefix, fact } = row
    if (set === EMPTY_SET) {
      row.fact = 0
      if (fact !== 0) ipcache.removeFact(fact)
    } else if (fact === 0) {
      row.fact = ipcache.addPrefixFact(prefix, OWNER_RESTORED, this.#owner, set)
    } else {
      ipcache.changeFact(fact, set)
    }
  }

  /** Returns true if a selector in force gives the label. */
  #isGiven(label: string): boolean {
    const { selectors, selectorLabels } = this.#core
    const selector = selectors.byLabel(label)
    return selector?.kind === 'fqdn' ? selectorLabels.has(selector) : selector !== undefined
  }
}
