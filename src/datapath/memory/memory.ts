// The memory datapath: the port without a kernel. It enforces nothing by itself (`hookState` is `unfenced`),
// but it judges any packet by the same rules as the eBPF programs, through `judge`: their executable model,
// what `npm start` runs with, and what tests without root stand on.

import type { Clock } from '../../core/clock.ts'
import type { EndpointId } from '../../core/ids.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import {
  COMMITTED,
  type ChangeSection,
  type Changes,
  type CommitFailure,
  type CommitResult,
  type Datapath,
  type DatapathCounters,
  type DatapathDump,
  type DatapathEvent,
  type EndpointEntry,
  type Hook,
  type HookState,
  type ListenerEntry,
  type Mode,
  type PeerScan,
  type PolicyEntry,
} from '../datapath.ts'
import type { AdoptedFlow, Adoption } from '../adoption.ts'
import type { InterceptedInterface } from '../interception.ts'
import type { PrefixBatch } from '../prefix-batch.ts'
import { Adoptions } from './adoptions.ts'
import { Connections } from './connections.ts'
import { Counters } from './counters.ts'
import { DnsSources } from './dns-sources.ts'
import { Interceptions } from './interceptions.ts'
import { Judge, type Verdict } from './judge.ts'
import { readFrame, readNetwork } from './packet.ts'
import { Policies } from './policies.ts'
import { Prefixes } from './prefixes.ts'

const EVENTS_MAX = 7_000

type Refuse = (section: ChangeSection, index: number) => void

export interface MemoryOptions {
  readonly clock: Clock
  /** Prefixes at most; those unused cost nothing. */
  readonly prefixesMax: number
  /** Policy entries at most, of all endpoints. */
  readonly policyEntriesMax: number
  readonly connectionsPerEndpoint: number
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  /** Adopted flows at most; default 65,536. */
  readonly adoptedMax?: number
  /** Index of an interface by name, so that interception by index can be modelled; default: none has one. */
  readonly ifIndex?: (name: string) => number
}

export class MemoryDatapath implements Datapath {
  readonly kind = 'memory'
  readonly #options: MemoryOptions
  readonly #counters = new Counters()
  readonly #connections: Connections
  #prefixes: Prefixes
  #policies: Policies
  readonly #endpoints = new Map<EndpointId, EndpointEntry>()
  readonly #listeners = new Set<string>()
  readonly #interceptions: Interceptions
  readonly #adoptions: Adoptions
  readonly #dnsSources = new DnsSources()
  #events: DatapathEvent[] = []
  #mode: Mode = 'enforce'

  constructor(options: MemoryOptions) {
    this.#options = options
    this.#prefixes = new Prefixes({ capacity: options.prefixesMax })
    this.#policies = new Policies({ capacity: options.policyEntriesMax })
    this.#adoptions = new Adoptions({
      clock: options.clock,
      ...(options.adoptedMax !== undefined && { flowsMax: options.adoptedMax }),
      onFull: () => this.#counters.add('adopted_table_full'),
    })
    this.#interceptions = new Interceptions(options.clock)
    this.#connections = new Connections({
      clock: options.clock,
      perEndpoint: options.connectionsPerEndpoint,
      tcpIdleMs: options.tcpIdleMs,
      udpIdleMs: options.udpIdleMs,
      onLimit: () => this.#counters.add('connections_over_limit'),
    })
  }

  start(): DatapathDump {
    return this.dump()
  }

  commit(changes: Changes): CommitResult {
    const failures: CommitFailure[] = []
    const refuse = (section: ChangeSection, index: number): void => {
      failures.push({ section, action: 'upsert', index, code: 'ENOSPC' })
    }
    this.#upsertPolicies(changes.policyUpserts, refuse)
    this.#upsertPrefixes(changes.prefixUpserts, refuse)
    for (const entry of changes.endpointUpserts) this.#putEndpoint(entry.id, entry)
    for (const id of changes.endpointRemovals) this.#putEndpoint(id, undefined)
    this.#counters.add(
      'map_writes_endpoints',
      changes.endpointUpserts.length + changes.endpointRemovals.length,
    )
    const { prefixRemovals, policyRemovals } = changes
    for (let i = 0; i < prefixRemovals.count; i++) this.#prefixes.remove(prefixRemovals, i)
    for (const key of policyRemovals) this.#policies.remove(key)
    this.#counters.add('map_writes_ipcache', prefixRemovals.count)
    this.#counters.add('map_writes_policy', policyRemovals.length)
    return failures.length === 0 ? COMMITTED : failures
  }

  /** Commits are applied when they return: there is nothing to tell. */
  onCommitted(): void {}

  setListeners(listeners: readonly ListenerEntry[]): void {
    this.#listeners.clear()
    for (const { family, octets, port } of listeners) {
      this.#listeners.add(`${formatAddress(family, octets)} ${port}`)
    }
  }

  setIntercepted(interfaces: readonly InterceptedInterface[]): void {
    this.#interceptions.set(interfaces)
  }

  intercepted(): readonly InterceptedInterface[] {
    return this.#interceptions.list()
  }

  setMode(mode: Mode): void {
    this.#mode = mode
  }

  readMode(): Mode {
    return this.#mode
  }

  refresh(): readonly EndpointId[] {
    return []
  }

  /** There is none to be missed. */
  onLinkNews(): boolean {
    return true
  }

  /** Nothing is attached to interfaces here. */
  fence(): void {}

  fenced(): readonly string[] {
    return []
  }

  hookState(endpoint: EndpointId): HookState {
    return this.#endpoints.has(endpoint)
      ? { kind: 'unfenced' }
      : { kind: 'waiting', reason: 'endpoint is not known' }
  }

  /** There is no kernel to number hooks: an interface or cgroup is known by its name. */
  hookKey(hook: Hook): string | undefined {
    switch (hook.kind) {
      case 'interface':
        return `interface:${hook.name}`
      case 'cgroup':
        return `cgroup:${hook.path}`
      case 'none':
        return undefined
    }
  }

  adopt(adoption: Adoption): number {
    return this.#adoptions.adopt(adoption)
  }

  adopted(): readonly AdoptedFlow[] {
    return this.#adoptions.list((id) => this.#endpoints.get(id)?.generation ?? 0)
  }

  sourceOf(
    protocol: number,
    family: Family,
    octets: Uint8Array,
    port: number,
  ): EndpointId | undefined {
    const id = this.#dnsSources.find(protocol, family, octets, port)
    return id !== undefined && this.#endpoints.has(id) ? id : undefined
  }

  scanPeers(): PeerScan {
    return this.#connections.scan((id) => this.#endpoints.get(id)?.generation ?? 0)
  }

  drainEvents(limit: number, visit: (event: DatapathEvent) => void): void {
    const now = this.#options.clock.now()
    for (const event of this.#events.splice(0, limit)) visit({ ...event, age: now - event.seen })
  }

  counters(): DatapathCounters {
    return this.#counters.all()
  }

  dump(): DatapathDump {
    return {
      mode: this.#mode,
      prefixes: this.#prefixes.dump(),
      policies: this.#policies.dump(),
      endpoints: [...this.#endpoints.values()].map(
        ({ id, generation, enforcing, audit, scoped, sources, hook }) => ({
          id,
          generation,
          enforcing,
          audit,
          scoped: scoped === true,
          sources: hook.kind === 'cgroup' ? [] : sources,
          hookKey: this.hookKey(hook) ?? '',
        }),
      ),
    }
  }

  #putEndpoint(id: EndpointId, entry: EndpointEntry | undefined): void {
    const before = this.#endpoints.get(id)
    if (before !== undefined && before.generation !== entry?.generation) {
      this.#adoptions.forget(before)
    }
    if (entry === undefined) this.#endpoints.delete(id)
    else this.#endpoints.set(id, entry)
  }

  /** With `leaveEnforcing` a later `start` of the same object finds everything as it was. */
  stop(options: { readonly leaveEnforcing: boolean }): void {
    if (options.leaveEnforcing) return
    this.#prefixes = new Prefixes({ capacity: this.#options.prefixesMax })
    this.#policies = new Policies({ capacity: this.#options.policyEntriesMax })
    this.#endpoints.clear()
    this.#listeners.clear()
    this.#interceptions.clear()
    this.#adoptions.clear()
    this.#connections.clear()
    this.#mode = 'enforce'
  }

  /** The verdict on an Ethernet frame that an endpoint sends (`from`) or is sent (`to`). */
  judge(endpoint: EndpointId, direction: 'from' | 'to', frame: Uint8Array): Verdict {
    const entry = this.#endpoints.get(endpoint)
    const hook = entry?.hook
    const read = hook?.kind === 'cgroup' ? readNetwork(frame) : readFrame(frame)
    const taken = this.#interceptions
    // 0, which no interface has, for other hooks.
    const index = hook?.kind === 'interface' ? (this.#options.ifIndex?.(hook.name) ?? 0) : 0
    const judge = new Judge({
      prefixes: this.#prefixes,
      policies: this.#policies,
      connections: this.#connections,
      mode: this.#mode,
      isListener: (family, address, port) =>
        this.#listeners.has(`${formatAddress(family, address)} ${port}`),
      isAdopted: (owner, packet, denied) =>
        this.#adoptions.covers(owner, packet, denied, this.#connections.has(owner, packet)),
      isIntercepted: (_, packet) => taken.covers(index, packet, frame),
      reachesListener: (_, packet) => !packet.adorned && !taken.isBridged(index, frame),
      isQuiet: (_, packet) => taken.isQuiet(index, packet),
      count: (name) => this.#counters.add(name),
      now: () => this.#options.clock.now(),
      report: (event) => this.#report(event),
      noteDnsSource: (id, packet) => this.#dnsSources.note(id, packet),
    })
    if (direction === 'from') return judge.from(entry, read)
    judge.to(entry, read)
    return 'pass'
  }

  #report(event: DatapathEvent): void {
    if (this.#events.length < EVENTS_MAX) this.#events.push(event)
    else this.#counters.add('events_lost')
  }

  #upsertPolicies(entries: readonly PolicyEntry[], refuse: Refuse): void {
    this.#counters.add('map_writes_policy', entries.length)
    entries.forEach((entry, i) => {
      if (!this.#policies.upsert(entry)) refuse('policy', i)
    })
  }

  #upsertPrefixes(batch: PrefixBatch, refuse: Refuse): void {
    this.#counters.add('map_writes_ipcache', batch.count)
    for (let i = 0; i < batch.count; i++) {
      if (!this.#prefixes.upsert(batch, i)) refuse('prefix', i)
    }
  }
}
