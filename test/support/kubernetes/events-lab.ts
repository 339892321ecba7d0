// Some nodes that may write Events, over one model of the API server, on fake time. The nodes know the same policies.

import type { FaultyPolicy } from '../../../src/kubernetes/cluster/cluster-policies.ts'
import { PolicyEvents } from '../../../src/kubernetes/events/policy-events.ts'
import { RandomPool } from '../../../src/core/random.ts'
import { SILENT } from '../../../src/telemetry/silent.ts'
import { FakeClock } from '../fake-clock.ts'
import { ApiModel, type Stored } from './api-model.ts'
import { MemoryApi } from './memory-api.ts'
import { at } from './watch-client.ts'

/** Each random part is half of its bound. */
const HALF = new RandomPool({ fill: (target) => target.fill(0x80) })

export const LEASE_MS = 60_000

export interface EventsNode {
  readonly name: string
  readonly api: MemoryApi
  readonly events: PolicyEvents
}

export class EventsLab {
  readonly clock = new FakeClock(0)
  readonly model = new ApiModel()
  readonly nodes: readonly EventsNode[]
  /** The most nodes that were the writer at one time. */
  mostWriters = 0
  readonly #random: RandomPool
  /** The policies of the cluster by name, with their UIDs. */
  readonly #uids = new Map<string, string>()
  readonly #faulty = new Map<string, FaultyPolicy>()

  constructor(names: readonly string[] = ['node-a'], random = HALF) {
    this.#random = random
    this.nodes = names.map((name) => this.add(name))
  }

  /** Makes a node, or a node that was started again. */
  add(name: string): EventsNode {
    const { clock, model } = this
    const api = new MemoryApi(model, clock)
    const events = new PolicyEvents({
      api,
      clock,
      log: SILENT,
      random: this.#random,
      namespace: 'namegate',
      node: name,
      leaseMs: LEASE_MS,
      policies: {
        faulty: () => this.#faulty,
        uidOf: (policy) => this.#uids.get(policy),
      },
    })
    return { name, api, events }
  }

  start(): this {
    for (const { events } of this.nodes) events.start()
    return this
  }

  stop(): void {
    for (const { events } of this.nodes) events.stop()
  }

  /** Time passes in steps of a second. */
  pass(seconds: number): void {
    for (let i = 0; i < seconds; i++) {
      this.clock.advance(1000)
      this.mostWriters = Math.max(this.mostWriters, this.writers.length)
    }
  }

  get writers(): readonly string[] {
    return this.nodes.filter(({ events }) => events.status.state === 'writing').map((n) => n.name)
  }

  /** A version of a policy has these faults; none: it is mended. */
  set(name: string, faults: readonly string[], more: Partial<FaultyPolicy> = {}): void {
    const uid = more.uid ?? `uid-${name}`
    this.#uids.set(name, uid)
    const position = { file: `kubernetes:CiliumNetworkPolicy/shop/${name}`, line: 0, column: 0 }
    this.#faulty.delete(name)
    if (faults.length === 0) return
    this.#faulty.set(name, {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      namespace: 'shop',
      name,
      uid,
      faults: faults.map((message) => ({ position, message })),
      hasLastGood: true,
      ...more,
    })
  }

  /** The cluster does not have the policy any more, and the node holds its removal. */
  hold(name: string): void {
    this.#uids.delete(name)
  }

  remove(name: string): void {
    this.#uids.delete(name)
    this.#faulty.delete(name)
  }

  /** `Warning PolicyFault x2: TEXT (node-a)` for each Event, by name. */
  told(): Readonly<Record<string, string>> {
    const events = this.model.all('events')
    return Object.fromEntries(events.map((each) => [shortName(each), describe(each)] as const))
  }
}

function shortName({ metadata }: Stored): string {
  return metadata.name.replace(/^namegate-/, '').replace('uid-', '')
}

function describe(event: Stored): string {
  const [type, reason, count, message] = ['type', 'reason', 'count', 'message'].map((key) =>
    String(at(event, key)),
  )
  return `${type} ${reason} x${count}: ${message} (${String(at(event, 'source', 'host'))})`
}
