// The nftables datapath: the port on sets and maps of namegate's own table. A commit becomes one netlink batch that a thread of
// its own hands to the kernel; when the kernel has confirmed it, or refused it, `onCommitted` is told. What stands in
// the kernel is known here (mirror, tables), so that an equal entry is no write and a table that was flushed is made anew.

import type { EndpointId } from '../../core/ids.ts'
import type { AdoptedFlow, Adoption } from '../adoption.ts'
import type {
  Changes,
  CommitResult,
  Datapath,
  DatapathCounters,
  DatapathDump,
  DatapathEvent,
  Hook,
  HookState,
  ListenerEntry,
  Mode,
  PeerScan,
} from '../datapath.ts'
import type { RepairedEntry } from '../fixture.ts'
import type { InterceptedInterface } from '../interception.ts'
import type { OwnTraffic } from '../own-traffic.ts'
import { takeChanges } from './commit.ts'
import { listenerElements } from './tables/exceptions.ts'
import { pack } from './netlink/keys.ts'
import { MODE_NUMBER } from './rules/layout.ts'
import { ownElements } from './tables/own.ts'
import { open, type NftablesOptions, type Running } from './running.ts'

export class NftablesDatapath implements Datapath {
  readonly kind = 'nftables'
  readonly #options: NftablesOptions
  #running: Running | undefined
  #onCommitted: (result: CommitResult) => void = () => undefined
  #onRepaired: ((first: RepairedEntry, count: number) => void) | undefined

  constructor(options: NftablesOptions) {
    this.#options = options
  }

  start(): DatapathDump {
    const { running, restored } = open(this.#options, {
      onDone: () => this.#running?.applier.finish(false),
      onCommitted: (result) => this.#onCommitted(result),
    })
    this.#running = running
    return restored
  }

  commit(changes: Changes): CommitResult | undefined {
    const { table, hooks, counters, applier } = this.#on()
    const taken = takeChanges(changes, table, hooks)
    counters.add(taken)
    return applier.commit(taken)
  }

  onCommitted(listener: (result: CommitResult) => void): void {
    this.#onCommitted = listener
  }

  /** Waits for the commit under way and tells its end as `onCommitted` does, from inside this call. */
  finishCommit(): void {
    this.#on().applier.finish(true)
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
    const { hooks, applier, watch, found } = this.#on()
    const changed = hooks.refresh()
    hooks.settle()
    watch.look()
    applier.flush()
    found.tell((first, count) => this.#onRepaired?.(first, count))
    return changed
  }

  onRepaired(listener: (first: RepairedEntry, count: number) => void): void {
    this.#onRepaired = listener
  }

  get looks(): number {
    return this.#running?.watch.looks ?? 0
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

  dumpInSlices(): Generator<undefined, DatapathDump> {
    return this.#on().dump.readInSlices()
  }

  /** Interface index of an endpoint that is attached, else 0. */
  interfaceOf(endpoint: EndpointId): number {
    return this.#on().hooks.indexOf(endpoint)
  }

  stop(options: { readonly leaveEnforcing: boolean }): void {
    const running = this.#running
    if (running === undefined) return
    this.#running = undefined
    running.table.take(true)
    if (!options.leaveEnforcing) running.table.remove()
    running.watch.close()
    running.hooks.close()
    running.events.close()
    running.peers.close()
    running.table.socket.close()
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
