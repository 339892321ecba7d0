// CoreState constructs the core in the order of dependencies: label sets, identities, selectors, prefixes, names, policy maps and the
// only committer. The parts are public, so that the daemon, views and tests can read them. The header of each part says which
// components write to the part.

import type { Clock } from '../core/clock.ts'
import type { Identity } from '../core/ids.ts'
import type { Prefix } from '../core/ip.ts'
import { LabelSets } from '../core/labels.ts'
import { Committer } from '../datapath/committer.ts'
import type { DatapathDump } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { InheritedEntries } from '../datapath/inherited-entries.ts'
import { PolicyMaps } from '../datapath/policy-maps.ts'
import { Allocator } from '../identity/allocator.ts'
import type { WithheldNumber } from '../identity/numbers.ts'
import { SelectorCache } from '../identity/selector-cache.ts'
import { OWNER_NAME } from '../ipcache/facts.ts'
import { IpCache } from '../ipcache/ipcache.ts'
import { Rederive } from '../ipcache/rederive.ts'
import { EndpointRemoval } from '../names/expiry/endpoint-removal.ts'
import { Expiry } from '../names/expiry/expiry.ts'
import { Guard } from '../names/guard.ts'
import { NameCache, type NameCacheOptions } from '../names/name-cache.ts'
import { NameScopes, type Learning } from '../names/name-scopes.ts'
import type { EntryLedger } from '../names/tables/entry-ledger.ts'
import { Relabel } from '../names/labels/relabel.ts'
import { SelectorLabels } from '../names/labels/selector-labels.ts'
import { NamePatterns } from '../policy/match/name-patterns.ts'
import { OwnerNames, RuleOrigins } from './rule-origins.ts'

export interface CoreLimits {
  readonly names: NameCacheOptions['bounds']
  readonly dynamicIdentities: number
  readonly dynamicIdentitiesPerEndpoint: number
  readonly policyEntries: number
  /** How many prefixes configuration can name, in addition to the addresses of `limits.pairs`. */
  readonly configuredPrefixes: number
}

export interface CoreOptions {
  readonly clock: Clock
  readonly datapath: Datapath
  /** Entries that an earlier daemon left in the datapath. */
  readonly restored: DatapathDump
  /** Identity numbers of an earlier daemon, each kept for its own label set. Absent: none. */
  readonly withheld?: readonly WithheldNumber[] | undefined
  /** Notes the entries whose record has to be saved. Absent: nothing is saved. */
  readonly ledger?: EntryLedger | undefined
  /** Called with newly numbered identities, before the datapath has an entry with such a number. */
  readonly onNumbers?: ((allocated: readonly Identity[]) => void) | undefined
  readonly limits: CoreLimits
  readonly graceSeconds: number
  readonly learning: Learning
  readonly nodeAddresses: readonly Prefix[]
  readonly protectedPrefixes: readonly Prefix[]
  /** `policies.cidr-matches-endpoints`. Default: false. */
  readonly cidrMatchesEndpoints?: boolean
}

export class CoreState {
  readonly clock: Clock
  readonly datapath: Datapath
  readonly labelSets = new LabelSets()
  readonly patterns = new NamePatterns()
  readonly owners = new OwnerNames()
  readonly origins = new RuleOrigins()
  readonly allocator: Allocator
  readonly selectors: SelectorCache
  readonly ipcache: IpCache
  readonly rederive: Rederive
  readonly selectorLabels: SelectorLabels
  readonly scopes: NameScopes
  readonly names: NameCache
  readonly relabel: Relabel
  readonly endpointRemoval: EndpointRemoval
  readonly expiry: Expiry
  readonly guard: Guard
  readonly policyMaps: PolicyMaps
  readonly committer: Committer
  /** Prefix entries that an earlier daemon left in the datapath. */
  readonly inherited: InheritedEntries

  constructor(options: CoreOptions) {
    const { clock, datapath, limits } = options
    const { labelSets, patterns } = this
    this.clock = clock
    this.datapath = datapath
    this.allocator = this.#makeAllocator(options)
    this.selectors = new SelectorCache({ labelSets })
    this.ipcache = new IpCache({
      labelSets,
      allocator: this.allocator,
      capacity: limits.names.pairs + limits.configuredPrefixes,
      // An entry can need a second row of the prefix table, in its endpoint's own scope.
      scopedCapacity: limits.names.pairs,
      knownHaveCidr: options.cidrMatchesEndpoints ?? false,
      ownerText: (kind, owner) =>
        kind === OWNER_NAME ? this.names.names.format(owner) : this.owners.text(owner),
    })
    this.rederive = new Rederive({ ipcache: this.ipcache })
    this.selectorLabels = new SelectorLabels({ labelSets, patterns })
    this.scopes = new NameScopes({ learning: options.learning, labelSets })
    this.guard = new Guard(options)
    this.names = new NameCache({
      ipcache: this.ipcache,
      labelSets,
      labeller: this.selectorLabels,
      clock,
      bounds: limits.names,
      graceSeconds: options.graceSeconds,
      scopes: this.scopes,
      guard: this.guard,
      ledger: options.ledger,
    })
    this.relabel = new Relabel({
      names: this.names,
      labeller: this.selectorLabels,
      scopes: this.scopes,
    })
    this.endpointRemoval = new EndpointRemoval({ names: this.names })
    this.expiry = new Expiry({ names: this.names, ipcache: this.ipcache, datapath, clock })
    this.policyMaps = this.#makePolicyMaps(limits.policyEntries)
    this.inherited = new InheritedEntries(options.restored.prefixes)
    this.committer = new Committer({
      clock,
      inherited: this.inherited,
      onNumbers: options.onNumbers,
      datapath,
      ipcache: this.ipcache,
      allocator: this.allocator,
      selectors: this.selectors,
      policyMaps: this.policyMaps,
      labelSets,
    })
  }

  #makeAllocator({ clock, restored, withheld, limits }: CoreOptions): Allocator {
    return new Allocator({
      labelSets: this.labelSets,
      clock,
      carried: carriedNumbers(restored),
      withheld,
      dynamicMax: limits.dynamicIdentities,
      dynamicPerEndpointMax: limits.dynamicIdentitiesPerEndpoint,
      hasEntries: (set) => this.policyMaps.reserve(set),
    })
  }

  #makePolicyMaps(entriesMax: number): PolicyMaps {
    return new PolicyMaps({
      selectors: this.selectors,
      labelSets: this.labelSets,
      setOf: (id) => this.allocator.setOf(id),
      entriesMax,
      isSpare: (id) => this.allocator.isSpare(id),
      isDynamic: (id) => this.allocator.isDynamic(id),
      ruleOf: (origins) => this.origins.setOf(origins),
    })
  }
}

/** Returns the identities in the entries that an earlier daemon left in the kernel. The allocator never hands out these numbers again. */
function carriedNumbers(restored: DatapathDump): ReadonlySet<Identity> {
  const carried = new Set<Identity>()
  const { prefixes } = restored
  let last: Identity | undefined
  // Many neighbouring entries have the same identity.
  for (let i = 0; i < prefixes.count; i++) {
    const id = prefixes.identity(i)
    if (id !== last) carried.add(id)
    last = id
  }
  for (const entry of restored.policies) carried.add(entry.identity)
  return carried
}
