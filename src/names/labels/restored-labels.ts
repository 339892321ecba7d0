// Labels of addresses that only the kernel knew when the daemon started (restore/restart.ts), as facts of the owner `restored`:
// those of the selectors by which their names were selected then, as far as names get these labels now. Which names they
// were is not known, so a selector that comes anew labels none of them. Written by Restart; Relabel brings a row up to date
// after selectors changed. Few rows: what was learned in the last moment before a kill.

import type { Prefix } from '../../core/ip.ts'
import { EMPTY_SET, type LabelSets } from '../../core/labels.ts'
import { OWNER_RESTORED } from '../../ipcache/facts.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'

export interface RestoredLabelsOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  /** Whether a selector in force gives this label. */
  readonly isGiven: (label: string) => boolean
}

interface Row {
  readonly prefix: Prefix
  readonly owner: number
  /** Those that it had. */
  readonly labels: readonly string[]
  /** 0: no label of them is given now. */
  fact: number
}

export class RestoredLabels {
  readonly #in: RestoredLabelsOptions
  readonly #rows: Row[] = []

  constructor(options: RestoredLabelsOptions) {
    this.#in = options
  }

  get count(): number {
    return this.#rows.length
  }

  /** Takes on an address; whether it has a label now. */
  add(prefix: Prefix, owner: number, labels: readonly string[]): boolean {
    const row: Row = { prefix, owner, labels, fact: 0 }
    this.#rows.push(row)
    this.#bring(row)
    return row.fact !== 0
  }

  /** Makes the labels of one row, from 0, agree with the selectors in force. */
  relabel(index: number): void {
    const row = this.#rows[index]
    if (row !== undefined) this.#bring(row)
  }

  /** Takes the last `count` rows away. */
  drop(count: number): void {
    for (const { fact } of this.#rows.splice(-count)) {
      if (fact !== 0) this.#in.ipcache.removeFact(fact)
    }
  }

  #bring(row: Row): void {
    const { ipcache, labelSets, isGiven } = this.#in
    const set = labelSets.intern(row.labels.filter(isGiven))
    const { prefix, owner, fact } = row
    if (set === EMPTY_SET) {
      row.fact = 0
      if (fact !== 0) ipcache.removeFact(fact)
    } else if (fact === 0) {
      row.fact = ipcache.addPrefixFact(prefix, OWNER_RESTORED, owner, set)
    } else {
      ipcache.changeFact(fact, set)
    }
  }
}
