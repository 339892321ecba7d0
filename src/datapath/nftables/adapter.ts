// The nftables datapath: the port on sets and maps of namegate's own table. A commit becomes one netlink batch that a thread of
// its own hands to the kernel; when the kernel has confirmed it, or refused it, `onCommitted` is told. What stands in
// the kernel is known here (mirror, tables), so that an equal entry is no write and a table that was flushed is made anew.

import type { EndpointId } from '../../core/ids.ts'
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
import { refuseAll, takeChanges, type Taken } from './commit.ts'
import { listenerElements } from './exceptions.ts'
import { pack } from './keys.ts'
import { MODE_NUMBER } from './layout.ts'
import { ownElements } from './own.ts'
import { open, type NftablesOptions, type Running } from './running.ts'

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
    this.#running = open(this.#options, () => this.#finish(false))
    return this.#running.dump.read()
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
    const { table, hooks } = this.#on()
    hooks.settle()
    const outcome = table.flush()
    if (outcome !== undefined) throw new Error(`Cannot ${what}: ${outcome}`)
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
