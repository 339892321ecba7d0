// The memory datapath: the port without a kernel, for dry runs (`datapath.kind: memory`) and for commands that work offline. It keeps
// what commits say and enforces nothing (`hookState` is `unfenced`). No packet reaches it.

import type { EndpointId } from '../../core/ids.ts'
import type { AdoptedFlow, Adoption } from '../adoption.ts'
import {
  COMMITTED,
  type ChangeSection,
  type Changes,
  type CommitFailure,
  type CommitResult,
  type Datapath,
  type DatapathCounters,
  type DatapathDump,
  type EndpointEntry,
  type Hook,
  type HookState,
  type ListenerEntry,
  type Mode,
  type PeerScan,
} from '../datapath.ts'
import type { InterceptedInterface } from '../interception.ts'
import { Policies } from './policies.ts'
import { Prefixes } from './prefixes.ts'

export interface MemoryOptions {
  /** Prefixes at most; those unused cost nothing. */
  readonly prefixesMax: number
  /** Policy entries at most, of all endpoints. */
  readonly policyEntriesMax: number
}

export class MemoryDatapath implements Datapath {
  readonly kind = 'memory'
  protected prefixes: Prefixes
  protected policies: Policies
  protected readonly endpoints = new Map<EndpointId, EndpointEntry>()
  readonly #options: MemoryOptions
  readonly #writes = { ipcache: 0, policy: 0, endpoints: 0 }
  #intercepted: readonly InterceptedInterface[] = []
  #mode: Mode = 'enforce'

  constructor(options: MemoryOptions) {
    this.#options = options
    this.prefixes = new Prefixes({ capacity: options.prefixesMax })
    this.policies = new Policies({ capacity: options.policyEntriesMax })
  }

  start(): DatapathDump {
    return this.dump()
  }

  commit(changes: Changes): CommitResult {
    const failures: CommitFailure[] = []
    const refuse = (section: ChangeSection, index: number): void => {
      failures.push({ section, action: 'upsert', index, code: 'ENOSPC' })
    }
    const { policyUpserts, prefixUpserts, endpointUpserts } = changes
    const { endpointRemovals, prefixRemovals, policyRemovals } = changes
    policyUpserts.forEach((entry, i) => {
      if (!this.policies.upsert(entry)) refuse('policy', i)
    })
    for (let i = 0; i < prefixUpserts.count; i++) {
      if (!this.prefixes.upsert(prefixUpserts, i)) refuse('prefix', i)
    }
    for (const entry of endpointUpserts) this.endpoints.set(entry.id, entry)
    for (const id of endpointRemovals) this.endpoints.delete(id)
    for (let i = 0; i < prefixRemovals.count; i++) this.prefixes.remove(prefixRemovals, i)
    for (const key of policyRemovals) this.policies.remove(key)
    this.#writes.policy += policyUpserts.length + policyRemovals.length
    this.#writes.ipcache += prefixUpserts.count + prefixRemovals.count
    this.#writes.endpoints += endpointUpserts.length + endpointRemovals.length
    return failures.length === 0 ? COMMITTED : failures
  }

  /** A commit is in force when `commit` returns. */
  onCommitted(): void {}

  setListeners(_: readonly ListenerEntry[]): void {}

  setIntercepted(interfaces: readonly InterceptedInterface[]): void {
    this.#intercepted = interfaces
      .filter(({ families }) => families[4] || families[6])
      .toSorted((a, b) => a.ifindex - b.ifindex)
  }

  intercepted(): readonly InterceptedInterface[] {
    return this.#intercepted
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

  onLinkNews(): boolean {
    return true
  }

  fence(): void {}

  fenced(): readonly string[] {
    return []
  }

  hookState(endpoint: EndpointId): HookState {
    return this.endpoints.has(endpoint)
      ? { kind: 'unfenced' }
      : { kind: 'waiting', reason: 'endpoint is not known' }
  }

  /** No kernel numbers the hooks, so their names stand for them. */
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

  adopt(_: Adoption): number {
    return 0
  }

  adopted(): readonly AdoptedFlow[] {
    return []
  }

  sourceOf(..._: Parameters<Datapath['sourceOf']>): EndpointId | undefined {
    return undefined
  }

  scanPeers(): PeerScan {
    return { next: () => true }
  }

  drainEvents(..._: Parameters<Datapath['drainEvents']>): void {}

  counters(): DatapathCounters {
    return {
      map_writes_ipcache: this.#writes.ipcache,
      map_writes_policy: this.#writes.policy,
      map_writes_endpoints: this.#writes.endpoints,
    }
  }

  dump(): DatapathDump {
    return {
      mode: this.#mode,
      prefixes: this.prefixes.dump(),
      policies: this.policies.dump(),
      endpoints: [...this.endpoints.values()].map(
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

  /** With `leaveEnforcing` a later `start` of the same object finds everything as it was. */
  stop(options: { readonly leaveEnforcing: boolean }): void {
    if (options.leaveEnforcing) return
    this.prefixes = new Prefixes({ capacity: this.#options.prefixesMax })
    this.policies = new Policies({ capacity: this.#options.policyEntriesMax })
    this.endpoints.clear()
    this.#intercepted = []
    this.#mode = 'enforce'
  }
}
