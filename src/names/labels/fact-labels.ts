// FactLabels makes labels and facts agree with the selectors in force: the labels of a name, the fact of a mapping in the node's scope,
// and the fact of an entry in the endpoint's own scope. The name cache calls FactLabels when it learns an address, and so does relabelling.

import { endpointId } from '../../core/ids.ts'
import { EMPTY_SET, type LabelSets } from '../../core/labels.ts'
import { OWNER_NAME } from '../../ipcache/facts.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { GUARDED_UNLESS_SAID, UNGUARDED } from '../guard.ts'
import type { MappingTable } from '../tables/mapping-table.ts'
import type { NameScopes } from '../name-scopes.ts'
import type { NameKey, NameTable } from '../tables/name-table.ts'
import type { EntryTable } from '../tables/entry-table.ts'
import type { UseTable } from '../tables/use-table.ts'
import type { WildcardNames } from '../eviction/wildcard-names.ts'

/** Finds the labels of a name: the labels of all FQDN selectors that match the name. Returns numbers of label sets. */
export interface NameLabeller {
  /** Grows with every change of the selectors. */
  readonly epoch: number
  /** Returns the labels of the name in wire form at `offset`. */
  labelsOf(wire: Uint8Array, offset: number): number
  /** Returns the labels of the key's name. If the key has the labels of the present epoch, there is no match. */
  labelsOfKey(key: NameKey): number
  /** Returns only those labels of the name that documents allow for guarded addresses. */
  guardedLabelsOf(wire: Uint8Array, offset: number): number
  /** Called with the new labels of a known name whenever its labels change. */
  noteSeen(labels: number): void
}

export interface FactLabelsOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  readonly labeller: NameLabeller
  readonly scopes: NameScopes
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly entries: EntryTable
  readonly uses: UseTable
  readonly wildcards: WildcardNames
}

export class FactLabels {
  readonly #options: FactLabelsOptions

  constructor(options: FactLabelsOptions) {
    this.#options = options
  }

  /** Makes a name's labels agree with the selectors in force. Returns true if the labels changed. `key`: the name's key, if any. */
  relabelName(name: number, key?: NameKey): boolean {
    const { names, labeller, labelSets, uses, wildcards } = this.#options
    if (names.epoch[name] === labeller.epoch) return false
    const labels =
      key === undefined
        ? labeller.labelsOf(names.octetsOf(name), names.offsetOf(name))
        : labeller.labelsOfKey(key)
    names.epoch[name] = labeller.epoch
    if (names.labels[name] === labels) return false
    labelSets.retain(labels)
    labelSets.release(names.labels[name]!)
    names.labels[name] = labels
    labeller.noteSeen(labels)
    for (let use = names.firstUse[name]!; use !== 0; use = uses.nextOfName[use]!) {
      wildcards.leave(use)
      wildcards.join(use, labels)
    }
    return true
  }

  /** Makes a mapping's fact in the node's scope agree with the name's labels. Returns false if a table is full. */
  relabelMapping(mapping: number): boolean {
    const { names, mappings, scopes, ipcache } = this.#options
    const name = mappings.name[mapping]!
    const isPlain = mappings.guarded[mapping] === UNGUARDED
    const labels = scopes.nodeLabels(isPlain ? names.labels[name]! : this.#guardedLabels(mapping))
    const fact = mappings.fact[mapping]!
    if (labels === EMPTY_SET) {
      mappings.fact[mapping] = 0
      if (fact !== 0) ipcache.removeFact(fact)
    } else if (fact !== 0) {
      ipcache.changeFact(fact, labels)
    } else {
      const added = ipcache.addFact(mappings.prefix[mapping]!, OWNER_NAME, name, labels)
      if (added === 0) return false
      mappings.fact[mapping] = added
    }
    return true
  }

  /** Makes an entry's fact in the endpoint's own scope agree with the name's labels. Returns false if a table is full. */
  relabelEntry(entry: number): boolean {
    const { entries, mappings, names, scopes, ipcache } = this.#options
    const fact = entries.fact[entry]!
    if (fact === 0 && !scopes.inUse) return true
    const mapping = entries.mapping[entry]!
    const name = mappings.name[mapping]!
    const endpoint = endpointId(entries.endpoint[entry]!)
    const isPlain = mappings.guarded[mapping] === UNGUARDED
    const labels = isPlain
      ? scopes.ownLabels(endpoint, names.labels[name]!)
      : scopes.ownGuardedLabels(this.#guardedLabels(mapping))
    if (labels === EMPTY_SET) {
      if (fact !== 0) this.dropFact(entry, fact)
    } else if (fact !== 0) {
      ipcache.changeFact(fact, labels)
    } else {
      const added = ipcache.addScopedFact(endpoint, mappings.prefix[mapping]!, name, labels)
      if (added === 0) return false
      entries.fact[entry] = added
    }
    return true
  }

  /** Returns the labels that a guarded address gets from its name. */
  #guardedLabels(mapping: number): number {
    const { mappings, names, labeller } = this.#options
    if (mappings.guarded[mapping] !== GUARDED_UNLESS_SAID) return EMPTY_SET
    const name = mappings.name[mapping]!
    return labeller.guardedLabelsOf(names.octetsOf(name), names.offsetOf(name))
  }

  /** Removes the fact of an entry. */
  dropFact(entry: number, fact: number): void {
    const { ipcache, entries } = this.#options
    ipcache.removeFact(fact)
    entries.fact[entry] = 0
  }
}
