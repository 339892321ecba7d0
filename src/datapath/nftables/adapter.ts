// The nftables datapath: the port on sets and maps of namegate's own table. A commit becomes one netlink batch that a thread of
// its own hands to the kernel; when the kernel has confirmed it, or refused it, `onCommitted` is told. What stands in
// the kernel is known here (mirror, tables), so that an equal entry is no write and a table that was flushed is made anew.

import { endpointId, identity, type EndpointId } from '../../core/ids.ts'
import type { Family } from '../../core/ip.ts'
import { loadConntrack, type ConntrackAddon, type Posix } from '../../native/native.ts'
import type { NetlinkAddon } from '../../native/nftables.ts'
import type { AdoptedFlow, Adoption } from '../adoption.ts'
import {
  COMMITTED,
  type Changes,
  type CommitResult,
  type Datapath,
  type DatapathCounters,
  type DatapathDump,
  type DatapathEvent,
  type Hook,
  type HookState,
  type ListenerEntry,
  type Mode,
  type PeerScan,
} from '../datapath.ts'
import type { InterceptedInterface } from '../interception.ts'
import type { OwnTraffic } from '../own-traffic.ts'
import { Adopted } from './adopted.ts'
import { refuseAll, takeChanges, type Taken } from './commit.ts'
import { Counters } from './counters.ts'
import { DumpReader } from './dump.ts'
import { Events } from './events.ts'
import { listenerElements } from './exceptions.ts'
import { Hooks } from './hooks.ts'
import { Intercepted } from './intercepted.ts'
import { pack } from './keys.ts'
import { MODE_NUMBER } from './layout.ts'
import { ownElements } from './own.ts'
import { Peers } from './peers.ts'
import { restore } from './restore.ts'
import { unavailable } from './socket.ts'
import { Table } from './table.ts'

export interface NftablesOptions {
  readonly netlink: NetlinkAddon
  readonly posix: Posix
  /** Default: the connection table of this network namespace. */
  readonly conntrack?: ConntrackAddon
  /** Prefixes at most; those unused cost nothing. */
  readonly prefixesMax: number
  /** Policy entries at most, of all endpoints. */
  readonly policyEntriesMax: number
  readonly tcpIdleMs: number
  /** Adopted flows at most; default 65,536. */
  readonly adoptedMax?: number
}

/** What there is between `start` and `stop`. */
interface Running {
  readonly table: Table
  readonly hooks: Hooks
  readonly dump: DumpReader
  readonly adopted: Adopted
  readonly intercepted: Intercepted
  readonly counters: Counters
  readonly events: Events
  readonly peers: Peers
}

const ADOPTED_MAX = 65_536

export class NftablesDatapath implements Datapath {
  readonly kind = 'nftables'
  readonly #options: NftablesOptions
  #running: Running | undefined
  #onCommitted: (result: CommitResult) => void = () => undefined
  /** The commit under way. */
  #taken: Taken | undefined

  constructor(options: NftablesOptions) {
    this.#options = options
  }

  start(): DatapathDump {
    const { netlink, posix, tcpIdleMs, adoptedMax = ADOPTED_MAX } = this.#options
    const conntrack = this.#options.conntrack ?? loadConntrack()
    const table = new Table({ ...this.#options, onDone: () => this.#finish(false) })
    try {
      const kept = restore(table)
      const outcome = table.install(kept)
      if (outcome !== undefined) throw unavailable('install nftables rules', outcome)
    } catch (error) {
      table.socket.close()
      throw error
    }
    const dump = new DumpReader(table.socket, table.message)
    const peers = new Peers({ addon: conntrack, idleMs: tcpIdleMs })
    const adopted = new Adopted({ table, max: adoptedMax })
    const hooks = new Hooks({
      posix,
      mirror: table.mirror,
      forget: (id, sources) => {
        adopted.forget(id)
        peers.forget(sources)
      },
      begin: (id, generation) => adopted.begin(id, generation),
    })
    this.#running = {
      table,
      hooks,
      dump,
      adopted,
      peers,
      intercepted: new Intercepted(table),
      counters: new Counters(table),
      events: new Events({
        netlink,
        indexOwner: (index) => hooks.ownerOf(index),
        explain: (endpoint, family, peer, protocol, port) =>
          this.#explain(endpoint, family, peer, protocol, port),
      }),
    }
    return dump.read()
  }

  commit(changes: Changes): CommitResult | undefined {
    const { table, hooks, counters } = this.#on()
    if (this.#taken !== undefined) throw new Error('Cannot commit: a commit is under way')
    const taken = takeChanges(changes, table, hooks)
    counters.add(taken)
    const outcome = table.submit()
    if (outcome === undefined) {
      this.#taken = taken
      return undefined
    }
    if (outcome === 'none') return resultOf(taken)
    return refuseAll(taken, outcome, table, hooks)
  }

  onCommitted(listener: (result: CommitResult) => void): void {
    this.#onCommitted = listener
  }

  /** Waits for the commit under way and tells its end as `onCommitted` does, from inside this call. */
  finishCommit(): void {
    this.#finish(true)
  }

  setListeners(listeners: readonly ListenerEntry[]): void {
    const { table } = this.#on()
    for (const [name, elements] of listenerElements(listeners)) {
      table.mirror.replace(name, elements)
    }
    this.#flush('set listeners')
  }

  /** Lets traffic of namegate itself pass where it shares the network namespace with whom it fences: to its
   *  upstreams only, and only with this mark from this user. */
  setOwnTraffic(own: readonly OwnTraffic[]): void {
    const { table } = this.#on()
    for (const [name, elements] of ownElements(own)) table.mirror.replace(name, elements)
    this.#flush('set own traffic')
  }

  setIntercepted(interfaces: readonly InterceptedInterface[]): void {
    this.#on().intercepted.set(interfaces)
    this.#flush('set intercepted interfaces')
  }

  intercepted(): readonly InterceptedInterface[] {
    return this.#on().intercepted.list()
  }

  setMode(mode: Mode): void {
    const { table } = this.#on()
    const key = mode === 'enforce' ? [] : [{ key: pack(['mark'], [MODE_NUMBER[mode]]) }]
    // Break glass may have changed it behind our back, so the kernel's word counts for what there is.
    if (this.readMode() === mode) return
    table.mirror.replace('mode', key)
    this.#flush(`set mode ${mode}`)
  }

  readMode(): Mode {
    const { dump, table } = this.#on()
    const mode = dump.mode()
    table.mirror.forget('mode')
    if (mode !== 'enforce') {
      table.mirror.restore('mode', { key: pack(['mark'], [MODE_NUMBER[mode]]) })
    }
    return mode
  }

  refresh(): readonly EndpointId[] {
    const { hooks } = this.#on()
    const changed = hooks.refresh()
    this.#flush('follow interfaces')
    return changed
  }

  onLinkNews(onNews: () => void): boolean {
    return this.#on().hooks.watch(onNews)
  }

  fence(patterns: readonly string[]): void {
    this.#on().hooks.fence(patterns)
    this.#flush('fence interfaces')
  }

  fenced(): readonly string[] {
    return this.#on().hooks.fenced()
  }

  hookState(endpoint: EndpointId): HookState {
    return this.#on().hooks.stateOf(endpoint)
  }

  hookKey(hook: Hook): string | undefined {
    return this.#on().hooks.keyOf(hook)
  }

  adopt(adoption: Adoption): number {
    const { adopted, hooks } = this.#on()
    return adopted.adopt(adoption, hooks.generationOf(adoption.endpoint))
  }

  adopted(): readonly AdoptedFlow[] {
    const { adopted, hooks } = this.#on()
    return adopted.list((id) => hooks.generationOf(id))
  }

  /** Cgroups are not fenced here, so nobody shares addresses. */
  sourceOf(): undefined {
    return undefined
  }

  scanPeers(): PeerScan {
    const { peers, hooks } = this.#on()
    return peers.scan(hooks.sourcesOf())
  }

  drainEvents(limit: number, visit: (event: DatapathEvent) => void): void {
    this.#on().events.drain(limit, visit)
  }

  counters(): DatapathCounters {
    const { counters, adopted, events } = this.#on()
    return {
      ...counters.read(),
      adopted_table_full: adopted.refused,
      events_lost: events.lost,
    }
  }

  dump(): DatapathDump {
    return this.#on().dump.read()
  }

  /** Interface index of an endpoint that is attached, else 0. */
  interfaceOf(endpoint: EndpointId): number {
    return this.#on().hooks.indexOf(endpoint)
  }

  stop(options: { readonly leaveEnforcing: boolean }): void {
    const running = this.#running
    if (running === undefined) return
    this.#running = undefined
    this.#taken = undefined
    running.table.socket.take(true)
    if (!options.leaveEnforcing) running.table.remove()
    running.hooks.close()
    running.events.close()
    running.peers.close()
    running.table.socket.close()
  }

  #finish(wait: boolean): void {
    const taken = this.#taken
    if (this.#running === undefined || taken === undefined) return
    const { table, hooks } = this.#running
    const done = table.socket.take(wait)
    if (done === 'busy') return
    this.#taken = undefined
    if (done.outcome === undefined) {
      this.#onCommitted(resultOf(taken))
      return
    }
    // Refused as a whole: once more with a table that is as it should be, and only then is it the entries' fault.
    const outcome = table.repair()
    this.#onCommitted(
      outcome === undefined ? resultOf(taken) : refuseAll(taken, outcome, table, hooks),
    )
  }

  /** Writes what changed outside of commits. What the kernel refuses is tried again with everything else. */
  #flush(what: string): void {
    const outcome = this.#on().table.flush()
    if (outcome !== undefined) throw new Error(`Cannot ${what}: ${outcome}`)
  }

  /** Identity and rule that a packet met, as far as what is wanted tells. */
  #explain(
    endpoint: EndpointId,
    family: Family,
    peer: Uint8Array,
    protocol: number,
    port: number,
  ): { readonly identity: number; readonly rule: number } {
    const { table, hooks } = this.#on()
    const { prefixes, policies } = table
    const isScoped = hooks.entryOf(endpoint)?.scoped === true
    let [id, addressClass] = isScoped ? prefixes.longest(endpoint, family, peer) : [0, 0]
    if (id === 0) [id, addressClass] = prefixes.longest(0, family, peer)
    if (id === 0) id = addressClass = family === 4 ? 9 : 10
    const found = [id, addressClass, 0].map((key) =>
      policies.find(endpointId(endpoint), identity(key), protocol, port),
    )
    const best = (['deny', 'allow', 'audit'] as const)
      .map((verdict) => found.find((entry) => entry?.verdict === verdict))
      .find((entry) => entry !== undefined)
    return { identity: id, rule: best?.rule ?? 0 }
  }

  #on(): Running {
    if (this.#running === undefined) {
      throw new Error('Cannot use the nftables datapath: not started')
    }
    return this.#running
  }
}

function resultOf(taken: Taken): CommitResult {
  return taken.failures.length === 0 ? COMMITTED : taken.failures
}
