// What names resolve to: per (endpoint, name, address) a lifetime, and a fact in the IPCache with the labels
// of all FQDN selectors that match the name: one per (name, address) for the node, or with `learning:
// endpoint` one in the scope of each endpoint that asked. Every answer to a known endpoint is kept, also
// when no selector matches yet, so that a selector added later applies to it.
//
// Written by the pipeline (`renew`, `learn`), by expiry (`forget`) and by relabelling; all in one thread. Cost of
// an answer known already: one table probe, for the name; from there to address and pair by their lists.

import type { Clock } from '../core/clock.ts'
import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import type { LabelSets } from '../core/labels.ts'
import type { IpCache } from '../ipcache/ipcache.ts'
import { ExpiryWheel } from './expiry-wheel.ts'
import { FactLabels, type NameLabeller } from './fact-labels.ts'
import { KnownPairs } from './known-pairs.ts'
import { MappingTable } from './mapping-table.ts'
import type { NameScopes } from './name-scopes.ts'
import { NameTable } from './name-table.ts'
import type { PairLedger } from './pair-ledger.ts'
import { PairTable } from './pair-table.ts'

/** A pair is one (endpoint, name, address). */
export type PairState = 'live' | 'grace' | 'connected'

export interface NameCacheOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  readonly labeller: NameLabeller
  readonly clock: Clock
  /** `limits.pairs`. */
  readonly pairsMax: number
  /** `limits.addresses-per-name`, counted over all endpoints. */
  readonly addressesPerNameMax: number
  /** `dns.grace-after-ttl` in seconds. */
  readonly graceSeconds: number
  readonly scopes: NameScopes
  /** Notes which pairs' records are to be written. Absent: none is. */
  readonly ledger?: PairLedger | undefined
}

/** A name as `learn` and `renew` want it: wire octets in lower case from 0, their number and `hashOctets` of them. */
export interface HashedName {
  readonly wire: Uint8Array
  readonly length: number
  readonly hash: number
}

/** Pairs that a restart found and that are not back yet. */
export interface PairsToRestore {
  /** Learns all of them that are about an address. */
  claim(family: Family, octets: Uint8Array, offset: number): void
}

/** Leaves a pair the grace that it has; at first that is `graceSeconds`. */
export const GRACE_AS_IT_IS = -1
/** Before any time: of a pair that has none yet. */
const NEVER = -0x8000_0000
/** Milliseconds of a clock tick of lifetimes. */
const TICK_MS = 1000

export class NameCache {
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly pairs: PairTable
  readonly wheel: ExpiryWheel
  readonly graceSeconds: number
  readonly scopes: NameScopes
  readonly labels: FactLabels
  readonly #known: KnownPairs
  readonly #ipcache: IpCache
  readonly #sets: LabelSets
  readonly #labeller: NameLabeller
  readonly #clock: Clock
  readonly #addressesMax: number
  readonly #ledger: PairLedger | undefined
  /** Claimed before anything else is learned of an address: it has all its labels at once. Undefined: none is left. */
  toRestore: PairsToRestore | undefined
  #boundHits = 0

  constructor(options: NameCacheOptions) {
    const capacity = options.pairsMax
    this.#ipcache = options.ipcache
    this.#sets = options.labelSets
    this.#labeller = options.labeller
    this.#clock = options.clock
    this.#addressesMax = options.addressesPerNameMax
    this.#ledger = options.ledger
    this.scopes = options.scopes
    this.graceSeconds = options.graceSeconds
    this.names = new NameTable({ capacity })
    const prefixCapacity = options.ipcache.prefixes.slots.capacity
    this.mappings = new MappingTable({ capacity, prefixCapacity })
    this.pairs = new PairTable({ capacity })
    this.wheel = new ExpiryWheel({ capacity, tick: this.tick() })
    this.labels = new FactLabels({
      ...options,
      names: this.names,
      mappings: this.mappings,
      pairs: this.pairs,
    })
    this.#known = new KnownPairs({
      names: this.names,
      mappings: this.mappings,
      pairs: this.pairs,
      prefixes: options.ipcache.prefixes,
    })
  }

  /** The present second. */
  tick(): number {
    return Math.floor(this.#clock.now() / TICK_MS)
  }

  /** How often a bound kept an address from being learned or labelled. */
  get boundHits(): number {
    return this.#boundHits
  }

  /**
   * Takes one address of an answer in: (endpoint, name, address) lives for `ttl` seconds (already clamped).
   * `grace`: seconds from then until it goes. Returns the row in the IPCache by which the endpoint sees the address, 0 when a bound left it out: then
   * nothing was changed.
   */
  learn(
    endpoint: EndpointId,
    name: HashedName,
    family: Family,
    octets: Uint8Array,
    offset: number,
    ttl: number,
    now = this.tick(),
    grace = GRACE_AS_IT_IS,
  ): number {
    this.toRestore?.claim(family, octets, offset)
    const nameRow = this.#holdName(name.wire, name.length, name.hash)
    if (nameRow === 0) return this.#full()
    const mapping = this.#holdMapping(nameRow, family, octets, offset)
    if (mapping === 0) {
      this.#dropIdleName(nameRow)
      return this.#full()
    }
    const pair = this.#holdPair(mapping, endpoint)
    if (pair === 0) {
      this.#dropIdleMapping(mapping)
      return this.#full()
    }
    this.#prolong(pair, now + Math.ceil(ttl), grace)
    return this.#rowOf(pair, mapping)
  }

  /**
   * The row of a name that was learned and has its labels, 0 for any other; for `renew`, once an answer. Holds until the
   * next change of names.
   */
  findCurrent(name: HashedName): number {
    const row = this.names.find(name.wire, 0, name.length, name.hash)
    return row !== 0 && this.names.epoch[row] === this.#labeller.epoch ? row : 0
  }

  /**
   * `learn` for a pair that is known, which nearly every answer brings: returns its row, or 0 with nothing changed when
   * that has to be left to `learn`. Going from the name along its lists touches a third of the memory that looking up
   * address, mapping and pair in their tables does (20,000 names: 1.0 us less an answer).
   */
  renew(
    endpoint: EndpointId,
    name: number,
    family: Family,
    octets: Uint8Array,
    offset: number,
    liveUntil: number,
    grace = GRACE_AS_IT_IS,
  ): number {
    const pair = this.#known.find(name, endpoint, family, octets, offset)
    if (pair === 0) return 0
    const mapping = this.pairs.mapping[pair]!
    if (!this.labels.relabelMapping(mapping) || !this.labels.relabelPair(pair)) return 0
    this.#prolong(pair, liveUntil, grace)
    return this.#rowOf(pair, mapping)
  }

  /** Forgets one pair, and with the last one its mapping, fact and name. */
  forget(pair: number): void {
    const mapping = this.pairs.mapping[pair]!
    this.#removePair(pair, mapping)
    this.#dropIdleMapping(mapping)
  }

  /** Says whether what the endpoint learns is labelled as named; what it learned already follows in `Relabel`. */
  setNamed(endpoint: EndpointId, named: boolean): void {
    if (this.scopes.setNamed(endpoint, named) && this.pairs.firstOf(endpoint) !== 0) {
      this.scopes.begin()
    }
  }

  stateOf(pair: number, scan: number): PairState {
    const now = this.tick()
    if (now <= this.pairs.liveUntil[pair]!) return 'live'
    const past = now > this.pairs.liveUntil[pair]! + this.pairs.grace[pair]!
    return past && this.pairs.seen[pair] === scan ? 'connected' : 'grace'
  }

  /** A name's address stays without its labels, for want of room. */
  countUnlabelled(): void {
    this.#boundHits++
  }

  #full(): number {
    this.#boundHits++
    return 0
  }

  /** A pair that lives longer stays where it waits: `Expiry` looks at it there, and puts it where it belongs then. */
  #prolong(pair: number, liveUntil: number, grace: number): void {
    if (liveUntil > this.pairs.liveUntil[pair]!) this.pairs.liveUntil[pair] = liveUntil
    if (grace !== GRACE_AS_IT_IS) {
      // Shorter than before: it must not wait where it does.
      if (grace < this.pairs.grace[pair]!) this.wheel.remove(pair)
      if (grace !== this.pairs.grace[pair]!) this.#ledger?.changed(pair)
      this.pairs.grace[pair] = grace
    }
    this.#ledger?.prolonged(pair, liveUntil)
    if (this.wheel.has(pair)) return
    this.wheel.place(pair, this.pairs.liveUntil[pair]! + this.pairs.grace[pair]! + 1)
  }

  #holdName(wire: Uint8Array, length: number, hash: number): number {
    const known = this.names.find(wire, 0, length, hash)
    const row = known === 0 ? this.names.add(wire, 0, length, hash) : known
    if (row === 0) return 0
    if (known === 0) this.names.epoch[row] = -1
    this.labels.relabelName(row)
    return row
  }

  #holdMapping(name: number, family: Family, octets: Uint8Array, offset: number): number {
    if (this.names.mappings[name]! >= this.#addressesMax)
      return this.#knownMapping(name, family, octets, offset)
    const prefix = this.#ipcache.holdAddress(family, octets, offset)
    if (prefix === 0) return 0
    const known = this.mappings.find(name, prefix)
    if (known !== 0) {
      this.#ipcache.dropRow(prefix)
      return this.labels.relabelMapping(known) ? known : 0
    }
    const row = this.mappings.add(name, prefix, this.names.firstMapping[name]!)
    if (row === 0) {
      this.#ipcache.dropRow(prefix)
      return 0
    }
    this.names.firstMapping[name] = row
    this.names.mappings[name]!++
    if (this.labels.relabelMapping(row)) return row
    this.#dropIdleMapping(row)
    return 0
  }

  #knownMapping(name: number, family: Family, octets: Uint8Array, offset: number): number {
    const prefix = this.#ipcache.prefixes.find(family, octets, offset, family === 4 ? 32 : 128)
    const known = prefix === 0 ? 0 : this.mappings.find(name, prefix)
    return known !== 0 && this.labels.relabelMapping(known) ? known : 0
  }

  #holdPair(mapping: number, endpoint: EndpointId): number {
    const known = this.pairs.find(mapping, endpoint)
    if (known !== 0) return this.labels.relabelPair(known) ? known : 0
    const row = this.pairs.add(mapping, endpoint, this.mappings.firstPair[mapping]!)
    if (row === 0) return 0
    this.pairs.liveUntil[row] = NEVER
    this.pairs.grace[row] = this.graceSeconds
    this.mappings.firstPair[mapping] = row
    this.#ledger?.changed(row)
    if (this.labels.relabelPair(row)) return row
    this.#removePair(row, mapping)
    return 0
  }

  /** The endpoint's own view of the address when it has one, else the node's. */
  #rowOf(pair: number, mapping: number): number {
    const base = this.mappings.prefix[mapping]!
    const { scoped } = this.#ipcache.prefixes
    if (scoped.count === 0) return base
    const own = scoped.find(this.pairs.endpoint[pair]!, base)
    return own === 0 ? base : own
  }

  #removePair(pair: number, mapping: number): void {
    const fact = this.pairs.fact[pair]!
    if (fact !== 0) this.labels.dropFact(pair, fact)
    this.wheel.remove(pair)
    this.#ledger?.removed(pair)
    this.mappings.firstPair[mapping] = this.pairs.remove(pair, this.mappings.firstPair[mapping]!)
  }

  #dropIdleMapping(mapping: number): void {
    if (this.mappings.firstPair[mapping] !== 0) return
    const name = this.mappings.name[mapping]!
    const fact = this.mappings.fact[mapping]!
    const prefix = this.mappings.prefix[mapping]!
    if (fact !== 0) this.#ipcache.removeFact(fact)
    this.mappings.fact[mapping] = 0
    this.names.firstMapping[name] = this.mappings.remove(mapping, this.names.firstMapping[name]!)
    this.names.mappings[name]!--
    this.#ipcache.dropRow(prefix)
    this.#dropIdleName(name)
  }

  #dropIdleName(name: number): void {
    if (this.names.mappings[name] !== 0 || !this.names.isUsed(name)) return
    this.#sets.release(this.names.labels[name]!)
    this.names.remove(name)
  }
}
