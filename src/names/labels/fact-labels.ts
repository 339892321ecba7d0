// Keeps the facts that names make in line with the selectors in force: the labels of a name, the fact of a mapping for the node,
// and the fact of an entry in its endpoint's own scope. Called when something is learned, and by relabelling.

import { endpointId } from '../../core/ids.ts'
import { EMPTY_SET, type LabelSets } from '../../core/labels.ts'
import { OWNER_NAME } from '../../ipcache/facts.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { GUARDED_UNLESS_SAID, UNGUARDED } from '../guard.ts'
import type { MappingTable } from '../tables/mapping-table.ts'
import type { NameScopes } from '../name-scopes.ts'
import type { NameTable } from '../tables/name-table.ts'
import type { EntryTable } from '../tables/entry-table.ts'
import type { UseTable } from '../tables/use-table.ts'
import type { WildcardNames } from '../eviction/wildcard-names.ts'

/** The labels of a name: those of all FQDN selectors that match it. */
export interface NameLabeller {
  /** Grows with every change of the selectors. */
  readonly epoch: number
  labelsOf(wire: Uint8Array, offset: number): number
  /** Those of them that documents allow for guarded addresses. */
  guardedLabelsOf(wire: Uint8Array, offset: number): number
  /** Called with the labels of each known name when it gets them. */
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
  readonly #in: FactLabelsOptions

  constructor(options: FactLabelsOptions) {
    this.#in = options
  }

  /** Makes a name's labels agree with the selectors in force; true when they changed. */
  relabelName(name: number): boolean {
    const { names, labeller, labelSets, uses, wildcards } = this.#in
    if (names.epoch[name] === labeller.epoch) return false
    const labels = labeller.labelsOf(names.octetsOf(name), names.offsetOf(name))
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

  /** Makes a mapping's fact for the node agree with its name's labels; false when a table is full. */
  relabelMapping(mapping: number): boolean {
    const { names, mappings, scopes, ipcache } = this.#in
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

  /** Makes an entry's fact in its endpoint's own scope agree with its labels; false when a table is full. */
  relabelEntry(entry: number): boolean {
    const { entries, mappings, names, scopes, ipcache } = this.#in
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

  /** The labels that a guarded address gets from its name. */
  #guardedLabels(mapping: number): number {
    const { mappings, names, labeller } = this.#in
    if (mappings.guarded[mapping] !== GUARDED_UNLESS_SAID) return EMPTY_SET
    const name = mappings.name[mapping]!
    return labeller.guardedLabelsOf(names.octetsOf(name), names.offsetOf(name))
  }

  /** Removes an entry's own fact. */
  dropFact(entry: number, fact: number): void {
    const { ipcache, entries } = this.#in
    ipcache.removeFact(fact)
    entries.fact[entry] = 0
  }
}
