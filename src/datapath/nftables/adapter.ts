// NftablesDatapath implements the datapath with sets and maps of namegate's own table. A commit becomes one netlink batch, and a
// separate thread hands the batch to the kernel. `onCommitted` reports when the kernel has confirmed or refused it. The mirror
// and the tables record what the kernel has. So an equal entry costs no write, and a flushed table can be written again.

import type { EndpointId } from '../../core/ids.ts'
import type {
  ExceptionControl,
  FenceControl,
  FlowAdoption,
  HookControl,
  ModeSwitch,
  PacketReports,
  PeerTable,
} from '../abilities.ts'
import type { Changes, CommitResult, DatapathDump, Mode } from '../entries.ts'
import type { Datapath } from '../datapath.ts'
import type { RepairByAdapter, RepairedEntry } from '../repair.ts'
import { takeChanges } from './commit.ts'
import { listenerElements, ownElements } from './tables/exceptions.ts'
import { pack } from './netlink/keys.ts'
import { MODE_NUMBER } from './rules/layout.ts'
import type { Element } from './tables/mirror.ts'
import { open, type NftablesOptions, type Running } from './running.ts'

export class NftablesDatapath implements Datapath {
  readonly kind = 'nftables'
  readonly #options: NftablesOptions
  #running: Running | undefined
  #onCommitted: (result: CommitResult) => void = () => undefined
  #onRepaired: (first: RepairedEntry, count: number) => void = () => undefined

  readonly mode: ModeSwitch = {
    set: (mode) => {
      const { table } = this.#on()
      // Break-glass mode may have changed the mode, so compare with the kernel's present mode.
      if (this.mode.read() === mode) return
      table.mirror.replace('mode', modeElements(mode))
      this.#flush(`set mode ${mode}`)
    },
    read: () => {
      const { dump, table } = this.#on()
      const mode = dump.mode()
      table.mirror.forget('mode')
      for (const element of modeElements(mode)) table.mirror.restore('mode', element)
      return mode
    },
  }
  readonly hooks: HookControl = {
    refresh: () => this.#refresh(),
    watch: (onNews) => this.#on().hooks.watch(onNews),
    stateOf: (endpoint) => this.#on().hooks.stateOf(endpoint),
    keyOf: (hook) => this.#on().hooks.keyOf(hook),
  }
  readonly exceptions: ExceptionControl = {
    setListeners: (listeners) => this.#replace(listenerElements(listeners), 'set listeners'),
    setOwn: (own) => this.#replace(ownElements(own), 'set own traffic'),
    setIntercepted: (interfaces) => {
      this.#on().intercepted.set(interfaces)
      this.#flush('set intercepted interfaces')
    },
    intercepted: () => this.#on().intercepted.list(),
  }
  readonly adoption: FlowAdoption = {
    adopt: (adoption) => {
      const { adopted, hooks } = this.#on()
      return adopted.adopt(adoption, hooks.generationOf(adoption.endpoint))
    },
    list: () => {
      const { adopted, hooks } = this.#on()
      return adopted.list((id) => hooks.generationOf(id))
    },
  }
  readonly peers: PeerTable = {
    scan: () => {
      const { peers, hooks } = this.#on()
      return peers.scan(hooks.sourcesOf())
    },
    // The kernel bounds its own connection table.
    use: () => undefined,
    // This datapath does not fence cgroups, so endpoints share no addresses.
    sourceOf: () => undefined,
  }
  readonly reports: PacketReports = {
    drain: (limit, visit) => this.#on().events.drain(limit, visit),
    counters: () => {
      const { counters, adopted, events } = this.#on()
      const { refused: adopted_table_full } = adopted
      return { ...counters.read(), adopted_table_full, events_lost: events.lost }
    },
  }

  readonly repair: RepairByAdapter = {
    kind: 'by-adapter',
    onRepaired: (listener) => (this.#onRepaired = listener),
    walks: () => this.#running?.watch.walks ?? 0,
  }

  constructor(options: NftablesOptions) {
    this.#options = options
  }

  get fences(): FenceControl {
    const { hooks } = this.#on()
    return {
      set: (patterns) => {
        hooks.fence(patterns)
        this.#flush('fence interfaces')
      },
      get names() {
        return hooks.fenced()
      },
    }
  }

  readAhead(): void {}

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

  /** Waits for the commit under way, and calls `onCommitted` before it returns. */
  finishCommit(): void {
    this.#on().applier.finish(true)
  }

  dump(): DatapathDump {
    return this.#on().dump.read()
  }

  dumpInSlices(): Generator<undefined, DatapathDump> {
    return this.#on().dump.readInSlices()
  }

  /** Returns the interface index of an attached endpoint, else 0. */
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
    running.hooks.stop()
    running.events.close()
    running.peers.close()
    running.table.socket.close()
  }

  #refresh(): readonly EndpointId[] {
    const { hooks, applier, watch, found } = this.#on()
    const changed = hooks.refresh()
    hooks.settle()
    watch.look()
    applier.flush()
    found.report(this.#onRepaired)
    return changed
  }

  /** Replaces the elements of these sets. */
  #replace(
    sets: Iterable<readonly [name: string, elements: readonly Element[]]>,
    what: string,
  ): void {
    const { table } = this.#on()
    for (const [name, elements] of sets) table.mirror.replace(name, elements)
    this.#flush(what)
  }

  /** Writes changes that belong to no commit. If the kernel refuses them, the next write of the whole table includes them. */
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

/** In mode enforce the set `mode` is empty. */
function modeElements(mode: Mode): readonly Element[] {
  return mode === 'enforce' ? [] : [{ key: pack(['mark'], [MODE_NUMBER[mode]]) }]
}
