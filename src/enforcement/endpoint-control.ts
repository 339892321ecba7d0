// Applies the endpoints of a source as the difference to those known. A new endpoint gets a number, facts for its addresses, rules,
// and then its hook. One that is gone is detached first; its connections and entries go with it, many entries in slices. A changed
// hook or address makes another endpoint: number and generation are new, so nothing of the old one applies to it
// (docs/spec/semantics 5).

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

/** An endpoint as a source knows it. */
export interface EndpointRecord {
  readonly name: string
  readonly addresses: readonly Prefix[]
  readonly labels: readonly string[]
  readonly hook: EndpointHook
  readonly audit: boolean
}

export interface EndpointControlOptions {
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly restored: DatapathDump
  readonly nodeAddresses: readonly Prefix[]
  readonly endpointsMax: number
  /** Called at the first apply with each endpoint whose hook exists and that no pinned state knows. */
  readonly onPresent?: (endpoint: Endpoint) => void
  /** Endpoints of the daemon before. Absent: none is known. */
  readonly saved?: SavedEndpoints | undefined
  /** Called with the record of an endpoint that came, changed or went. */
  readonly onDocument?: ((document: SavedDocument) => void) | undefined
}

/** Addresses per endpoint that the table has room for, on average. */
const ADDRESSES_PER_ENDPOINT = 4
/** Entries forgotten in the commit that removes an endpoint, about 2 ms. The transition forgets the rest. */
const REMOVAL_SLICE = 2048

export class EndpointControl {
  readonly registry: EndpointRegistry
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #facts: ConfigFacts
  readonly #nodeAddresses: readonly Prefix[]
  /** Endpoints that the kernel fences from an earlier daemon and that no source listed yet, by hook. */
  readonly #adoptable = new Map<string, DatapathEndpoint>()
  /** Numbers of the endpoints that the kernel fences from before. */
  readonly #fenced = new Set<EndpointId>()
  readonly #entries = new Map<EndpointId, EndpointEntry>()
  /** The kernel's number of each endpoint's hook, from when the hook existed last. */
  readonly #hookKeys = new Map<EndpointId, string>()
  readonly #onPresent: (endpoint: Endpoint) => void
  readonly #saved: SavedEndpoints | undefined
  readonly #onDocument: (document: SavedDocument) => void
  /** True until endpoints are applied once: those existed before enforcement. */
  #isFirst = true
  #nextId: number

  constructor(options: EndpointControlOptions) {
    this.#core = options.core
    this.#policies = options.policies
    this.#nodeAddresses = options.nodeAddresses
    this.#onPresent = options.onPresent ?? (() => undefined)
    this.#saved = options.saved
    this.#onDocument = options.onDocument ?? (() => undefined)
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

  /** Whether all addresses of endpoints have their labels. Otherwise applying the endpoints again may help. */
  get isComplete(): boolean {
    return this.#facts.refused === 0
  }

  /** Makes the endpoints exactly these; the caller then runs the transition. */
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

  /**
   * The endpoint's hook came, went or was made again. A hook that went ends the workload behind it. A later workload under the
   * same name is another endpoint, without the entries and connections of the first (docs/spec/semantics 5). True: the endpoint
   * began anew, and the caller runs the transition.
   */
  followHook(endpoint: Endpoint): boolean {
    const before = this.#hookKeys.get(endpoint.id)
    const key = this.#noteHook(endpoint)
    // The datapath may have seen an earlier hook that this component did not check.
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

  /** Turns auditing of an endpoint on or off at run time. */
  setAudit(endpoint: Endpoint, audit: boolean): void {
    const changed = { ...endpoint, audit }
    this.registry.remove(endpoint.id)
    this.registry.add(changed)
    this.#publish(changed)
  }

  /** The endpoints that the datapath has to fence, for comparing with the kernel. */
  entries(): Iterable<EndpointEntry> {
    return this.#entries.values()
  }

  /** The records of all endpoints. */
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
    // Once scoped, always scoped: entries in the scope may outlive their reason, and an empty scope costs nothing.
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

/** The same workload at the same place: connections and learned names stay its own. */
function samePlace(endpoint: Endpoint, record: EndpointRecord): boolean {
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
