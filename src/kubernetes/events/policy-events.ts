// PolicyEvents writes an Event when a policy of the cluster has faults, and when it has none any more. Every node sees the same policies, so
// only the node with the lease writes. Each second the writer looks what is due, and sends one Event at most. So nothing queues up, and only
// the newest state of a policy is written. No policy waits for any of this.

import type { Timer } from '../../core/clock.ts'
import type { FaultyPolicy } from '../cluster/cluster-policies.ts'
import { faultText, MENDED, type PolicyEvent } from './policy-event.ts'
import { EventWriter, type EventResult, type EventWriterOptions } from './event-writer.ts'
import { WriterLease, type WriterLeaseOptions } from './writer-lease.ts'

/** The policies of the cluster, by the names of their objects. */
export interface PolicySource {
  faulty(): Iterable<readonly [name: string, policy: FaultyPolicy]>
  /** The UID of a policy that the cluster has. */
  uidOf(name: string): string | undefined
}

export interface PolicyEventsOptions
  extends EventWriterOptions, Omit<WriterLeaseOptions, 'onOther'> {
  readonly policies: PolicySource
}

export interface EventsStatus {
  /** `standby`: another node writes, or no node. */
  readonly state: 'standby' | 'writing' | 'forbidden'
  /** The node that writes. Empty: no node, or not known. */
  readonly writer: string
  /** Empty while all is well. */
  readonly reason: string
}

/** At most one Event in this time. */
const TICK_MS = 1_000
/** At least this time lies between two Events about one policy. */
export const PAUSE_MS = 10_000
/** After this time the Event about a fault that stays is written again. By default, a server keeps an Event for one hour. */
export const REPEAT_MS = 1_800_000

interface Told {
  readonly event: PolicyEvent
  /** The time of `Clock.now`. */
  readonly at: number
}

/** An Event that is to be written at a time. */
interface Due extends Told {
  readonly name: string
}

export class PolicyEvents {
  readonly #options: PolicyEventsOptions
  readonly #lease: WriterLease
  readonly #writer: EventWriter
  /** The last Event about each policy with faults, by the names of their objects. An empty text: another node has written it. */
  #told = new Map<string, Told>()
  /** The policies with faults when this node last heard of another writer. */
  #seen: readonly (readonly [name: string, policy: FaultyPolicy])[] = []
  #ticks: Timer | undefined
  #reported = ''

  constructor(options: PolicyEventsOptions) {
    this.#options = options
    this.#lease = new WriterLease({ ...options, onOther: () => this.#leaveToOther() })
    this.#writer = new EventWriter(options)
  }

  get status(): EventsStatus {
    const { isHeld, holder } = this.#lease
    const part = isHeld ? this.#writer : this.#lease
    const { isForbidden, reason } = part
    const state = isForbidden ? 'forbidden' : isHeld ? 'writing' : 'standby'
    return { state, writer: holder, reason }
  }

  /** A sentence if a right is missing. */
  get warnings(): readonly string[] {
    const { state, reason } = this.status
    return state === 'forbidden' ? [`Events about policies: ${reason}`] : []
  }

  get counts(): Readonly<Record<EventResult, number>> {
    return this.#writer.counts
  }

  start(): void {
    this.#lease.start()
    this.#ticks = this.#options.clock.every(TICK_MS, () => this.#tick())
  }

  stop(): void {
    this.#ticks?.cancel()
    this.#writer.stop()
    this.#lease.stop()
  }

  /** Stops, and frees the lease for the other nodes. Resolves soon, whether the server answers or not. */
  async release(): Promise<void> {
    this.#ticks?.cancel()
    this.#writer.stop()
    await new Promise<void>((done) => this.#lease.release(done))
  }

  /**
   * The other writer has written what was faulty at the look before. If it dies, this node takes over: it writes all faults anew, and says
   * which policies were mended in the meantime.
   */
  #leaveToOther(): void {
    const by = { reason: 'PolicyFault', text: '', count: 0, since: 0 } as const
    const told = this.#seen.map(([name, policy]) => {
      return [name, { event: { policy, ...by }, at: Number.NEGATIVE_INFINITY }] as const
    })
    this.#told = new Map(told)
    this.#seen = [...this.#options.policies.faulty()]
  }

  #tick(): void {
    this.#report()
    if (this.#writer.isBusy || !this.#lease.isHeld) return
    const now = this.#options.clock.now()
    let first: Due | undefined
    for (const due of this.#due()) {
      if (due.at <= now && (first === undefined || due.at < first.at)) first = due
    }
    if (first === undefined) return
    const { name, event } = first
    this.#writer.write(event, () => {
      if (event.reason === 'PolicyMended') this.#told.delete(name)
      else this.#told.set(name, { event, at: this.#options.clock.now() })
    })
  }

  /** Logs each new state. */
  #report(): void {
    const { state, reason } = this.status
    const text = `${state} ${reason}`
    if (text === this.#reported) return
    this.#reported = text
    const { log } = this.#options
    if (reason === '') log.info({}, `Events about policies: ${state}`)
    else log.warn({ reason }, 'Events about policies are not written')
  }

  *#due(): Iterable<Due> {
    const { policies, clock } = this.#options
    const faulty = new Set<string>()
    for (const [name, policy] of policies.faulty()) {
      if (policies.uidOf(name) !== policy.uid) continue
      faulty.add(name)
      yield { name, ...this.#fault(policy, this.#told.get(name)) }
    }
    for (const [name, { event, at }] of this.#told) {
      if (faulty.has(name)) continue
      const { policy } = event
      const mended = {
        reason: 'PolicyMended',
        text: MENDED,
        count: 1,
        since: clock.wall(),
      } as const
      if (policies.uidOf(name) !== policy.uid) this.#told.delete(name)
      else yield { name, event: { policy, ...mended }, at: at + PAUSE_MS }
    }
  }

  #fault(policy: FaultyPolicy, told: Told | undefined): Told {
    const { node, clock } = this.#options
    const text = faultText(policy, node)
    const event = { policy, reason: 'PolicyFault', text, count: 1, since: clock.wall() } as const
    if (told?.event.policy.uid !== policy.uid) return { event, at: Number.NEGATIVE_INFINITY }
    const { count, since, text: before } = told.event
    const again = count === 0 ? event : { ...event, count: count + 1, since }
    return { event: again, at: told.at + (text === before ? REPEAT_MS : PAUSE_MS) }
  }
}
