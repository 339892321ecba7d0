// EndpointControl compares the endpoints of a source with the known endpoints, and applies the difference. A new endpoint gets a number,
// facts for its addresses, rules, and then its hook. An endpoint that is gone is detached first. Then its connections and its entries are
// removed, many entries in slices. An endpoint with a changed hook or address is a new endpoint. It has a new number and generation, so
// nothing that was known of the old endpoint applies to it (docs/spec/semantics 5).

import { endpointId, generation, type EndpointId } from '../core/ids.ts'
import { formatPrefix, type Prefix } from '../core/ip.ts'
import type { DatapathDump, DatapathEndpoint, EndpointEntry } from '../datapath/entries.ts'
import { EndpointRegistry, type Endpoint, type EndpointHook } from '../endpoints/registry.ts'
import { OWNER_ENDPOINT, OWNER_NODE } from '../ipcache/facts.ts'
import { ConfigFacts, type WantedFact } from './config-facts.ts'
import type { CoreState } from './core-state.ts'
import type { PolicyControl } from './policy-control.ts'
import { endpointDocument, endpointGone, type SavedEndpoints } from '../restore/saved-endpoints.ts'
import type { SavedDocument } from '../restore/state-port.ts'

/** An endpoint as a source describes it. */
export interface EndpointRecord {
  readonly name: string
  readonly addresses: readonly Prefix[]
  readonly labels: readonly string[]
  readonly hook: EndpointHook
  readonly audit: boolean
  /** The identity that a cluster gave the workload. A workload with another one is a new endpoint. */
  readonly uid?: string | undefined
  /** Where its source describes it: the path of a file, or the name of a cluster's object. */
  readonly origin?: string | undefined
}

/** How many addresses per endpoint the table has room for, on average. */
const ADDRESSES_PER_ENDPOINT = 4
/** How many entries are forgotten in the commit that removes an endpoint. This takes about 2 ms. The transition forgets the rest. */
const REMOVAL_SLICE = 2048

export class EndpointControl {
  readonly registry: EndpointRegistry
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #facts: ConfigFacts
  #nodeAddresses: readonly Prefix[]
  /** Endpoints that an earlier daemon left in the kernel and that no source has listed yet. The key is the kernel's key of the hook. */
  readonly #adoptable = new Map<string, DatapathEndpoint>()
  /** The numbers of all endpoints that an earlier daemon left in the kernel. */
  readonly #fenced = new Set<EndpointId>()
  readonly #entries = new Map<EndpointId, EndpointEntry>()
  /** The kernel's key of each endpoint's hook, when the hook was last seen. */
  readonly #hookKeys = new Map<EndpointId, string>()
  readonly #onPresent: (endpoint: Endpoint) => void
  readonly #saved: SavedEndpoints | undefined
  readonly #onDocument: (document: SavedDocument) => void
  readonly #onGone: (endpoint: Endpoint) => void
  /** True until the first `apply`. The endpoints of the first `apply` existed before enforcement. */
  #isFirst = true
  #nextId: number

  constructor(options: {
    readonly core: CoreState
    readonly policies: PolicyControl
    readonly restored: DatapathDump
    readonly nodeAddresses: readonly Prefix[]
    readonly endpointsMax: number
    /** Called in the first `apply` for each endpoint whose hook exists and that no pinned state knows. */
    readonly onPresent?: (endpoint: Endpoint) => void
    /** The endpoints that an earlier daemon saved. Absent: none. */
    readonly saved?: SavedEndpoints | undefined
    /** Called with the record to save when an endpoint is new, changed or gone. */
    readonly onDocument?: ((document: SavedDocument) => void) | undefined
    /** Called with each endpoint that is gone, before another can have its name. */
    readonly onGone?: (endpoint: Endpoint) => void
  }) {
    this.#core = options.core
    this.#policies = options.policies
    this.#nodeAddresses = options.nodeAddresses
    this.#onPresent = options.onPresent ?? (() => undefined)
    this.#saved = options.saved
    this.#onDocument = options.onDocument ?? (() => undefined)
    this.#onGone = options.onGone ?? (() => undefined)
    this.#facts = new ConfigFacts(options)
    const addressesMax = options.endpointsMax * ADDRESSES_PER_ENDPOINT
    this.registry = new EndpointRegistry({ addressesMax })
    for (const endpoint of options.restored.endpoints) {
      if (endpoint.hookKey === '') continue
      this.#adoptable.set(endpoint.hookKey, endpoint)
      this.#fenced.add(endpoint.id)
    }
    this.#nextId = 1 + Math.max(highestId(options.restored), options.saved?.highest ?? 0)
  }

  /** True if every address of an endpoint got its labels. False if a full table refused labels; then a later `apply` can help. */
  get isComplete(): boolean {
    return this.#facts.refused === 0
  }

  /** Makes the known endpoints equal to `records`. The caller then runs the transition. */
  apply(records: readonly EndpointRecord[]): void {
    const wanted = new Map(records.map((record) => [record.name, record]))
    for (const endpoint of this.registry) {
      const record = wanted.get(endpoint.name)
      if (record === undefined || !samePlace(endpoint, record)) this.#remove(endpoint)
    }
    this.#core.endpointRemoval.step(REMOVAL_SLICE)
    const added: Endpoint[] = []
    for (const record of records) {
      const known = this.registry.byName(record.name)
      if (known !== undefined && sameMeaning(known, record)) continue
      if (known !== undefined) this.registry.remove(known.id)
      const endpoint = known === undefined ? this.#make(record) : { ...known, ...record }
      this.registry.add(endpoint)
      added.push(endpoint)
    }
    this.#facts.apply(this.#wantedFacts())
    this.#policies.setEndpoints(this.registry)
    for (const endpoint of added) this.#publish(endpoint)
    this.#isFirst = false
  }

  /** Replaces the node's own addresses. Names that led to a new one lead there no longer. The caller then runs the transition. */
  setNodeAddresses(addresses: readonly Prefix[]): void {
    this.#nodeAddresses = addresses
    this.#core.guard.setNodeAddresses(addresses)
    for (const { family, octets } of addresses) this.#core.names.forgetAddress(family, octets)
    this.#facts.apply(this.#wantedFacts())
  }

  /**
   * Handles an endpoint whose hook appeared, disappeared or was made again. When a hook disappears, the workload behind it has ended. A
   * later workload under the same name is a new endpoint, without the entries and connections of the old one (docs/spec/semantics 5).
   * Returns true if the endpoint became a new endpoint. Then the caller runs the transition.
   */
  followHook(endpoint: Endpoint): boolean {
    const before = this.#hookKeys.get(endpoint.id)
    const key = this.#noteHook(endpoint)
    // The datapath can have seen a hook that came and went between two calls of this method.
    const hook = this.#core.datapath.hooks.stateOf(endpoint.id)
    const isRemade = hook.kind === 'waiting' && hook.remade === true
    if (!isRemade && (before === undefined || before === key)) return false
    this.#remove(endpoint)
    this.#core.endpointRemoval.step(REMOVAL_SLICE)
    const id = endpointId(this.#nextId++)
    const successor = { ...endpoint, id, generation: generation(id) }
    this.registry.add(successor)
    this.#policies.setEndpoints(this.registry)
    this.#publish(successor)
    return true
  }

  /** Turns audit of an endpoint on or off at run time. */
  setAudit(endpoint: Endpoint, audit: boolean): void {
    const changed = { ...endpoint, audit }
    this.registry.remove(endpoint.id)
    this.registry.add(changed)
    this.#publish(changed)
  }

  /** The endpoints that the datapath has to enforce. Reconciliation compares them with the kernel. */
  entries(): Iterable<EndpointEntry> {
    return this.#entries.values()
  }

  /** The records of all endpoints, to be saved. */
  documents(): readonly SavedDocument[] {
    return [...this.registry].map((endpoint) => {
      return endpointDocument(endpoint, this.#hookKeys.get(endpoint.id))
    })
  }

  #make(record: EndpointRecord): Endpoint {
    const key = this.#core.datapath.hooks.keyOf(record.hook)
    const adopted = key === undefined ? undefined : this.#adoptable.get(key)
    if (key !== undefined) this.#adoptable.delete(key)
    if (adopted !== undefined && samePrefixes(adopted.sources, record.addresses)) {
      if (key !== undefined) this.#saved?.adopt(adopted.id, record, key)
      return { ...record, id: adopted.id, generation: adopted.generation }
    }
    const known = adopted === undefined ? this.#saved?.take(record, key) : undefined
    if (known !== undefined && !this.#fenced.has(known.id)) return { ...record, ...known }
    const id = endpointId(this.#nextId++)
    const endpoint = { ...record, id, generation: generation(id) }
    const isPresent = record.hook.kind !== 'none' && key !== undefined
    if (this.#isFirst && isPresent && adopted === undefined) this.#onPresent(endpoint)
    return endpoint
  }

  #publish(endpoint: Endpoint): void {
    const { id, hook, audit, addresses: sources, generation: own } = endpoint
    // An endpoint stays scoped, because entries in its scope can outlive the setting that made them. An empty scope costs nothing.
    const scoped = this.#policies.isScoped(endpoint) || this.#entries.get(id)?.scoped === true
    const entry = { id, generation: own, hook, enforcing: true, audit, scoped, sources }
    this.#entries.set(id, entry)
    this.#noteHook(endpoint)
    this.#core.committer.upsertEndpoint(entry)
  }

  #noteHook(endpoint: Endpoint): string | undefined {
    const { id, hook } = endpoint
    const key = this.#core.datapath.hooks.keyOf(hook)
    if (key !== undefined) this.#hookKeys.set(id, key)
    this.#onDocument(endpointDocument(endpoint, key))
    return key
  }

  #remove(endpoint: Endpoint): void {
    this.registry.remove(endpoint.id)
    this.#entries.delete(endpoint.id)
    this.#hookKeys.delete(endpoint.id)
    this.#core.committer.removeEndpoint(endpoint.id)
    this.#policies.removeEndpoint(endpoint.id)
    this.#core.endpointRemoval.add(endpoint.id)
    this.#onDocument(endpointGone(endpoint.id))
    this.#onGone(endpoint)
  }

  *#wantedFacts(): Iterable<WantedFact> {
    for (const prefix of this.#nodeAddresses) {
      yield { prefix, kind: OWNER_NODE, owner: 'node', labels: ['reserved:host'] }
    }
    for (const endpoint of this.registry) {
      const labels = this.#policies.identityLabels.of(endpoint.labels)
      for (const prefix of endpoint.addresses) {
        yield { prefix, kind: OWNER_ENDPOINT, owner: endpoint.name, labels }
      }
    }
  }
}

function highestId(restored: DatapathDump): number {
  let highest = 0
  for (const { id } of restored.endpoints) highest = Math.max(highest, id)
  for (const { endpoint } of restored.policies) highest = Math.max(highest, endpoint)
  const { prefixes } = restored
  for (let i = 0; i < prefixes.count; i++) highest = Math.max(highest, prefixes.scope(i))
  return highest
}

/** True if the record describes the same workload at the same place. Then the endpoint keeps its connections and learned names. */
function samePlace(endpoint: Endpoint, record: EndpointRecord): boolean {
  if (endpoint.uid !== record.uid) return false
  return samePrefixes(endpoint.addresses, record.addresses) && sameHook(endpoint.hook, record.hook)
}

function sameMeaning(endpoint: Endpoint, record: EndpointRecord): boolean {
  const labels = [...record.labels].sort().join('\n')
  return endpoint.audit === record.audit && [...endpoint.labels].sort().join('\n') === labels
}

function samePrefixes(a: readonly Prefix[], b: readonly Prefix[]): boolean {
  const texts = new Set(a.map(formatPrefix))
  return a.length === b.length && b.every((prefix) => texts.has(formatPrefix(prefix)))
}

function sameHook(a: EndpointHook, b: EndpointHook): boolean {
  switch (a.kind) {
    case 'interface':
      return b.kind === 'interface' && a.name === b.name && a.side === b.side
    case 'cgroup':
      return b.kind === 'cgroup' && a.path === b.path
    case 'none':
      return b.kind === 'none'
  }
}
