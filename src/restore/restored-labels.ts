// Labels of addresses that only the kernel knew when the daemon started, as facts of the owner `restored`. An address gets
// those of its former labels that a selector in force gives now. The names behind the address are unknown, so new
// selectors label none of these addresses. Written by Restart; Relabel updates a row when selectors change. Few rows: only
// what was learned in the last moment before a kill.

import type { Prefix } from '../core/ip.ts'
import { EMPTY_SET } from '../core/labels.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { OWNER_RESTORED } from '../ipcache/facts.ts'

interface Row {
  readonly prefix: Prefix
  /** The former labels. */
  readonly labels: readonly string[]
  /** 0: no selector gives any of the labels now. */
  fact: number
}

export class RestoredLabels {
  readonly #core: CoreState
  /** The owner of the facts, as OwnerNames numbers it. */
  readonly #owner: number
  readonly #rows: Row[] = []

  constructor(core: CoreState, owner: number) {
    this.#core = core
    this.#owner = owner
  }

  get count(): number {
    return this.#rows.length
  }

  /** Adds an address; true when it has a label now. */
  add(prefix: Prefix, labels: readonly string[]): boolean {
    const row: Row = { prefix, labels, fact: 0 }
    this.#rows.push(row)
    this.#update(row)
    return row.fact !== 0
  }

  /** Brings the labels of one row, counted from 0, in line with the selectors in force. */
  relabel(index: number): void {
    const row = this.#rows[index]
    if (row !== undefined) this.#update(row)
  }

  /** Takes the last `count` rows away. */
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

  /** Whether a selector in force gives the label. */
  #isGiven(label: string): boolean {
    const { selectors, selectorLabels } = this.#core
    const selector = selectors.byLabel(label)
    return selector?.kind === 'fqdn' ? selectorLabels.has(selector) : selector !== undefined
  }
}
