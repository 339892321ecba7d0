// MemoryDatapath is a datapath without a kernel. Dry runs (`datapath.kind: memory`) and commands that work offline use it. It stores the
// entries of commits and enforces nothing, so the state of every hook is `unfenced`. No packet reaches it.

import type { EndpointId } from '../../core/ids.ts'
import type {
  DatapathCounters,
  ExceptionControl,
  FenceControl,
  FlowAdoption,
  HookControl,
  ModeSwitch,
  PacketReports,
  PeerTable,
} from '../abilities.ts'
import {
  COMMITTED,
  type ChangeSection,
  type Changes,
  type CommitFailure,
  type CommitResult,
  type DatapathDump,
  type EndpointEntry,
  type Hook,
  type Mode,
} from '../entries.ts'
import { type Datapath } from '../datapath.ts'
import type { Repair } from '../repair.ts'
import { NO_ADOPTION, NO_FENCES, NO_PEERS, NO_REPAIR, NoExceptions } from './no-kernel.ts'
import { Policies } from './policies.ts'
import { Prefixes } from './prefixes.ts'

export interface MemoryOptions {
  /** The bound of prefixes. Unused room costs no memory. */
  readonly prefixesMax: number
  /** The bound of policy entries of all endpoints together. */
  readonly policyEntriesMax: number
}

export class MemoryDatapath implements Datapath {
  readonly kind = 'memory'
  protected prefixes: Prefixes
  protected policies: Policies
  protected readonly endpoints = new Map<EndpointId, EndpointEntry>()
  readonly #options: MemoryOptions
  readonly #writes = { ipcache: 0, policy: 0, endpoints: 0 }
  #mode: Mode = 'enforce'

  readonly mode: ModeSwitch = { set: (mode) => (this.#mode = mode), read: () => this.#mode }
  readonly hooks: HookControl = {
    refresh: () => [],
    watch: () => true,
    stateOf: (endpoint) =>
      this.endpoints.has(endpoint)
        ? { kind: 'unfenced' }
        : { kind: 'waiting', reason: 'endpoint is not known' },
    keyOf: nameOf,
  }
  readonly fences: FenceControl = NO_FENCES
  readonly exceptions: ExceptionControl = new NoExceptions()
  readonly adoption: FlowAdoption = NO_ADOPTION
  readonly peers: PeerTable = NO_PEERS
  readonly reports: PacketReports = {
    drain: () => undefined,
    counters: () => this.writeCounters(),
  }
  readonly repair: Repair = NO_REPAIR

  constructor(options: MemoryOptions) {
    this.#options = options
    this.prefixes = new Prefixes({ capacity: options.prefixesMax })
    this.policies = new Policies({ capacity: options.policyEntriesMax })
  }

  readAhead(): void {}

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

  /** Ignores the listener, because every commit is in force when `commit` returns. */
  onCommitted(): void {}

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
          hookKey: nameOf(hook) ?? '',
        }),
      ),
    }
  }

  *dumpInSlices(): Generator<undefined, DatapathDump> {
    yield undefined
    return this.dump()
  }

  protected writeCounters(): DatapathCounters {
    return {
      map_writes_ipcache: this.#writes.ipcache,
      map_writes_policy: this.#writes.policy,
      map_writes_endpoints: this.#writes.endpoints,
    }
  }

  /** Removes everything. With `leaveEnforcing` it keeps everything, and a later `start` of the same object finds it. */
  stop(options: { readonly leaveEnforcing: boolean }): void {
    if (options.leaveEnforcing) return
    this.prefixes = new Prefixes({ capacity: this.#options.prefixesMax })
    this.policies = new Policies({ capacity: this.#options.policyEntriesMax })
    this.endpoints.clear()
    this.exceptions.setIntercepted([])
    this.#mode = 'enforce'
  }
}

/** Returns the key of a hook. No kernel numbers the hooks, so the key is made of the hook's name. */
function nameOf(hook: Hook): string | undefined {
  switch (hook.kind) {
    case 'interface':
      return `interface:${hook.name}`
    case 'cgroup':
      return `cgroup:${hook.path}`
    case 'none':
      return undefined
  }
}
