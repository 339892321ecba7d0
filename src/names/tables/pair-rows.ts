// Rows of names, mappings, uses and pairs brought into being and away again, with what hangs on them: facts in the IPCache,
// references to label sets, places in the orders that the bounds go by. What is added is linked everywhere or nowhere.
// Written by the name cache alone.

import type { EndpointId } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import type { LabelSets } from '../../core/labels.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { BatchMarks } from '../batch-marks.ts'
import { Contacts } from '../expiry/contacts.ts'
import { FactLabels, type NameLabeller } from '../labels/fact-labels.ts'
import { UNGUARDED, type Guard } from '../guard.ts'
import { LabelKinds } from '../labels/label-kinds.ts'
import { MappingTable } from './mapping-table.ts'
import type { NameScopes } from '../name-scopes.ts'
import { NameTable } from './name-table.ts'
import { PairOrders } from '../eviction/pair-orders.ts'
import { PairTable } from './pair-table.ts'
import { UseTable } from './use-table.ts'
import { Victims } from '../eviction/victims.ts'
import { WildcardNames, type WildcardBounds } from './wildcard-names.ts'

export interface PairRowsOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  readonly labeller: NameLabeller
  readonly scopes: NameScopes
  /** Absent: no address is guarded. */
  readonly guard?: Pick<Guard, 'levelOf'> | undefined
  /** `limits.pairs`. */
  readonly capacity: number
  readonly wildcards: WildcardBounds
  /** (endpoint, address) with an open connection that can be known at once. */
  readonly contacts: number
}

/** Before any time: of a pair that has none yet. */
const NEVER = -0x8000_0000

export class PairRows {
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly uses: UseTable
  readonly pairs: PairTable
  readonly contacts: Contacts
  readonly labels: FactLabels
  readonly orders: PairOrders
  readonly wildcards: WildcardNames
  /** Told of a mapping that goes, with the next one of its address; for who walks along them in steps. */
  onMappingGone: (mapping: number, nextOfAddress: number) => void = () => undefined
  readonly #heldPairs: BatchMarks
  readonly #heldUses: BatchMarks
  readonly #victims = new Victims()
  readonly #ipcache: IpCache
  readonly #sets: LabelSets
  readonly #guard: PairRowsOptions['guard']

  constructor(options: PairRowsOptions) {
    const { capacity, ipcache, labelSets } = options
    this.#guard = options.guard
    this.#ipcache = ipcache
    this.#sets = labelSets
    this.names = new NameTable({ capacity })
    const prefixCapacity = ipcache.prefixes.slots.capacity
    const { firstMapping, firstUse } = this.names
    this.mappings = new MappingTable({ capacity, prefixCapacity, firstOfName: firstMapping })
    this.uses = new UseTable({ capacity, firstOfName: firstUse })
    this.pairs = new PairTable({ capacity, firstOfMapping: this.mappings.firstPair })
    this.contacts = new Contacts({ capacity: options.contacts })
    this.#heldPairs = new BatchMarks({ capacity })
    this.#heldUses = new BatchMarks({ capacity })
    const { names, mappings, uses, pairs } = this
    const victims = this.#victims
    const kinds = new LabelKinds(labelSets)
    this.orders = new PairOrders({
      pairs,
      uses,
      mappings,
      victims,
      isHeld: (pair) => this.#heldPairs.has(pair),
      isExact: (pair) => kinds.isExact(names.labels[uses.name[pairs.use[pair]!]!]!),
      capacity,
    })
    this.wildcards = new WildcardNames({
      uses,
      labelSets,
      kinds,
      victims,
      bounds: options.wildcards,
      isHeld: (use) => this.#heldUses.has(use),
    })
    const { wildcards } = this
    this.labels = new FactLabels({ ...options, names, mappings, uses, pairs, wildcards })
  }

  /** The next batch of answers: what the one before taught may go when there is no room. */
  begin(): void {
    this.#heldPairs.begin()
    this.#heldUses.begin()
    this.#victims.release()
  }

  /** An answer of the batch at hand is about the pair. */
  touch(pair: number, now: number): void {
    const use = this.pairs.use[pair]!
    this.uses.asked[use] = now
    this.#heldPairs.mark(pair)
    this.#heldUses.mark(use)
  }

  /** The row of a name with the labels of the selectors in force, made when missing; 0 when the table is full. */
  holdName(wire: Uint8Array, length: number, hash: number): number {
    const known = this.names.find(wire, 0, length, hash)
    const row = known === 0 ? this.names.add(wire, 0, length, hash) : known
    if (row === 0) return 0
    if (known === 0) this.names.epoch[row] = -1
    this.labels.relabelName(row)
    return row
  }

  /** The row of (name, address), with its fact, made when missing; 0 when a table is full. */
  holdMapping(name: number, family: Family, octets: Uint8Array, offset: number): number {
    const prefix = this.#ipcache.holdAddress(family, octets, offset)
    if (prefix === 0) return 0
    const known = this.mappings.find(name, prefix)
    if (known !== 0) {
      this.#ipcache.dropRow(prefix)
      return this.labels.relabelMapping(known) ? known : 0
    }
    const row = this.mappings.add(name, prefix)
    if (row === 0) {
      this.#ipcache.dropRow(prefix)
      return 0
    }
    this.names.mappings[name]!++
    this.mappings.guarded[row] = this.#guard?.levelOf(family, octets, offset) ?? UNGUARDED
    if (this.labels.relabelMapping(row)) return row
    this.dropIdleMapping(row)
    return 0
  }

  /** A pair that is not known yet, with a grace of so many seconds and no time to live; 0 when a table is full. */
  addPair(mapping: number, endpoint: EndpointId, now: number, grace: number): number {
    const { mappings, pairs } = this
    const row = pairs.add(mapping, endpoint)
    if (row === 0) return 0
    pairs.liveUntil[row] = NEVER
    pairs.grace[row] = grace
    const use = this.#holdUse(endpoint, mappings.name[mapping]!, now)
    this.uses.firstPair[use] = pairs.linkToUse(row, use, this.uses.firstPair[use]!)
    this.uses.pairs[use]!++
    this.orders.add(row)
    if (this.contacts.has(endpoint, mappings.prefix[mapping]!)) this.setConnected(row, true, now)
    if (this.labels.relabelPair(row)) return row
    this.removePair(row)
    return 0
  }

  /** A connection to the pair's address opened, or the last one ended; true when that is news. */
  setConnected(pair: number, connected: boolean, now: number): boolean {
    const { pairs, uses, wildcards } = this
    if ((pairs.connected[pair] !== 0) === connected) return false
    pairs.connected[pair] = connected ? 1 : 0
    if (!connected) pairs.lastConnected[pair] = now
    const use = pairs.use[pair]!
    uses.connected[use]! += connected ? 1 : -1
    if (uses.connected[use] === (connected ? 1 : 0)) wildcards.connectedChanged(use)
    this.orders.changed(pair)
    return true
  }

  /** Takes a pair away; its mapping stays. */
  removePair(pair: number): void {
    const { pairs, uses } = this
    const fact = pairs.fact[pair]!
    if (fact !== 0) this.labels.dropFact(pair, fact)
    if (pairs.connected[pair] !== 0) this.setConnected(pair, false, 0)
    this.orders.remove(pair)
    const use = pairs.use[pair]!
    uses.firstPair[use] = pairs.unlinkFromUse(pair, uses.firstPair[use]!)
    this.#heldPairs.clear(pair)
    if (--uses.pairs[use]! === 0) {
      this.wildcards.leave(use)
      this.#heldUses.clear(use)
      uses.remove(use)
    }
    pairs.remove(pair)
  }

  /** Takes a mapping away that has no pairs, and then its name. */
  dropIdleMapping(mapping: number): void {
    if (this.mappings.firstPair[mapping] !== 0) return
    const name = this.mappings.name[mapping]!
    const fact = this.mappings.fact[mapping]!
    const prefix = this.mappings.prefix[mapping]!
    this.onMappingGone(mapping, this.mappings.nextOfPrefix[mapping]!)
    if (fact !== 0) this.#ipcache.removeFact(fact)
    this.mappings.fact[mapping] = 0
    this.mappings.remove(mapping)
    this.names.mappings[name]!--
    this.#ipcache.dropRow(prefix)
    this.dropIdleName(name)
  }

  /** Takes a name away that has no mappings. */
  dropIdleName(name: number): void {
    if (this.names.mappings[name] !== 0 || !this.names.isUsed(name)) return
    this.#sets.release(this.names.labels[name]!)
    this.names.remove(name)
  }

  #holdUse(endpoint: EndpointId, name: number, now: number): number {
    const { uses, names } = this
    const known = uses.find(endpoint, name)
    if (known !== 0) return known
    const use = uses.add(endpoint, name)
    uses.asked[use] = now
    this.wildcards.join(use, names.labels[name]!)
    return use
  }
}
