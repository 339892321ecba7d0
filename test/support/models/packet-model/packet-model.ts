// The executable model of the kernel's programs and rules: a memory datapath that also judges packets. `judge` follows the order of a
// verdict in src/datapath/datapath.ts. The contract suite, the scenarios and the random packets run it.

import type { Clock } from '../../../../src/core/clock.ts'
import type { EndpointId } from '../../../../src/core/ids.ts'
import { formatAddress } from '../../../../src/core/ip.ts'
import type {
  ExceptionControl,
  FlowAdoption,
  PacketReports,
  PeerTable,
} from '../../../../src/datapath/abilities.ts'
import type { Changes, CommitResult, DatapathEvent } from '../../../../src/datapath/entries.ts'
import { MemoryDatapath, type MemoryOptions } from '../../../../src/datapath/memory/memory.ts'
import { Adoptions } from './adoptions.ts'
import { Connections } from './connections.ts'
import { Counters } from './counters.ts'
import { DnsSources } from './dns-sources.ts'
import { Interceptions } from './interceptions.ts'
import { Judge, type Verdict } from './judge.ts'
import { readFrame, readNetwork } from './packet.ts'

const EVENTS_MAX = 7_000

export interface PacketModelOptions extends MemoryOptions {
  readonly clock: Clock
  readonly connectionsPerEndpoint: number
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  /** The bound of adopted connections; default 65,536. */
  readonly adoptedMax?: number
  /** Index of an interface by name, so that interception by index can be modelled; default: none has one. */
  readonly ifIndex?: (name: string) => number
}

export class PacketModel extends MemoryDatapath {
  readonly #options: PacketModelOptions
  readonly #counters = new Counters()
  readonly #connections: Connections
  readonly #listeners = new Set<string>()
  readonly #interceptions: Interceptions
  readonly #adoptions: Adoptions
  readonly #dnsSources = new DnsSources()
  #events: DatapathEvent[] = []

  override readonly exceptions: ExceptionControl = {
    setListeners: (listeners) => {
      this.#listeners.clear()
      for (const { family, octets, port } of listeners) {
        this.#listeners.add(`${formatAddress(family, octets)} ${port}`)
      }
    },
    setOwn: () => undefined,
    setIntercepted: (interfaces) => this.#interceptions.set(interfaces),
    intercepted: () => this.#interceptions.list(),
  }
  override readonly adoption: FlowAdoption = {
    adopt: (adoption) => this.#adoptions.adopt(adoption),
    list: () => this.#adoptions.list((id) => this.endpoints.get(id)?.generation ?? 0),
  }
  override readonly peers: PeerTable = {
    scan: () => this.#connections.scan((id) => this.endpoints.get(id)?.generation ?? 0),
    use: () => undefined,
    sourceOf: (protocol, family, octets, port) => {
      const id = this.#dnsSources.find(protocol, family, octets, port)
      return id !== undefined && this.endpoints.has(id) ? id : undefined
    },
  }
  override readonly reports: PacketReports = {
    drain: (limit, visit) => {
      const now = this.#options.clock.now()
      for (const event of this.#events.splice(0, limit)) {
        visit({ ...event, age: now - event.seen })
      }
    },
    counters: () => ({ ...this.writeCounters(), ...this.#counters.all() }),
  }

  constructor(options: PacketModelOptions) {
    super(options)
    this.#options = options
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

  override commit(changes: Changes): CommitResult {
    const before = new Map(this.endpoints)
    const result = super.commit(changes)
    for (const [id, entry] of before) {
      if (this.endpoints.get(id)?.generation !== entry.generation) this.#adoptions.forget(entry)
    }
    return result
  }

  override stop(options: { readonly leaveEnforcing: boolean }): void {
    super.stop(options)
    if (options.leaveEnforcing) return
    this.#listeners.clear()
    this.#interceptions.clear()
    this.#adoptions.clear()
    this.#connections.clear()
  }

  /** The verdict on an Ethernet frame that an endpoint sends (`from`) or receives (`to`). */
  judge(endpoint: EndpointId, direction: 'from' | 'to', frame: Uint8Array): Verdict {
    const entry = this.endpoints.get(endpoint)
    const hook = entry?.hook
    const read = hook?.kind === 'cgroup' ? readNetwork(frame) : readFrame(frame)
    const taken = this.#interceptions
    // Other hooks use 0, which is the index of no interface.
    const index = hook?.kind === 'interface' ? (this.#options.ifIndex?.(hook.name) ?? 0) : 0
    const judge = new Judge({
      prefixes: this.prefixes,
      policies: this.policies,
      connections: this.#connections,
      mode: this.mode.read(),
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
}
