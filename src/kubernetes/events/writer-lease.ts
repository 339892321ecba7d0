// WriterLease makes one node of the cluster the writer, with a Lease. The writer renews the Lease. Another node takes the Lease when it has
// not changed for its whole time. Each node measures this with its own clock, so the clocks of nodes need not agree.
//
// | state     | after                                         | next                                              |
// |-----------|-----------------------------------------------|---------------------------------------------------|
// | standby   | the Lease is missing, free, own, or too old   | takes it; `held` after the server has accepted    |
// | standby   | another node has changed it                   | looks again after half of its time, or up to all of it |
// | held      | a third of its time                           | renews it; a conflict is a reason to look         |
// | held      | two thirds of its time without a renewal      | standby: the others wait longer than that         |
// | any       | 403                                           | forbidden: looks again after 30 to 60 s           |

import type { Clock } from '../../core/clock.ts'
import type { RandomPool } from '../../core/random.ts'
import {
  NO_ANSWER,
  type ApiAnswer,
  type ApiLoss,
  type ApiWriter,
  type ApiRequest,
} from '../connection/api-port.ts'
import { describeEnd, statusOfAnswer } from '../connection/api-status.ts'
import { fieldAt, textAt } from '../cluster/fields.ts'
import { Backoff, halfToWhole, randomPart, SLOW_MS } from '../reflector/backoff.ts'
import { describeRule, groupPath } from '../reflector/collections.ts'
import { readVersion } from '../reflector/objects.ts'
import { Work } from '../reflector/work.ts'

export interface WriterLeaseOptions {
  readonly api: ApiWriter
  readonly clock: Clock
  readonly random: RandomPool
  /** The namespace of the Lease. */
  readonly namespace: string
  /** The name of this node in the cluster. */
  readonly node: string
  /** How long a Lease lasts without a renewal. */
  readonly leaseMs: number
  /** Called when a look finds that another node has renewed the Lease since the look before. */
  readonly onOther: () => void
}

export const LEASES = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  resource: 'leases',
} as const

export const LEASE_NAME = 'namegate-events'

/** After this time without an answer a request is given up. */
export const ANSWER_MS = 10_000
/** How long the end of the daemon waits for the server. */
const RELEASE_MS = 1_000

type Verb = 'get' | 'create' | 'patch'

export class WriterLease {
  readonly #options: WriterLeaseOptions
  readonly #work: Work
  readonly #backoff: Backoff
  #version = ''
  #changedAt = 0
  #heldUntil = Number.NEGATIVE_INFINITY
  #holder = ''
  #reason = ''
  #isForbidden = false

  constructor(options: WriterLeaseOptions) {
    this.#options = options
    this.#work = new Work(options.clock)
    this.#backoff = new Backoff(options.random)
  }

  /** True while this node is the writer. */
  get isHeld(): boolean {
    return this.#options.clock.now() < this.#heldUntil
  }

  /** The node that has the Lease, as far as this node knows. Empty: no node, or not known yet. */
  get holder(): string {
    return this.#holder
  }

  /** What the last request met. Empty while all is well. */
  get reason(): string {
    return this.#reason
  }

  get isForbidden(): boolean {
    return this.#isForbidden
  }

  start(): void {
    const { random, leaseMs } = this.#options
    this.#work.wait(randomPart(random, leaseMs / 2), () => this.#look())
  }

  stop(): void {
    this.#heldUntil = Number.NEGATIVE_INFINITY
    this.#work.end()
  }

  /** Stops, and frees the Lease for the other nodes. Calls `done` soon, whether the server answers or not. */
  release(done: () => void): void {
    const wasHeld = this.isHeld
    this.stop()
    if (!wasHeld) return done()
    const end = (): void => {
      this.#work.end()
      done()
    }
    this.#work.open(this.#change({ holderIdentity: null }, end), RELEASE_MS, end)
  }

  #look(): void {
    // The cache of the server is good enough: a change of an old version is refused.
    const path = `${this.#path}/${LEASE_NAME}?resourceVersion=0`
    const done = (end: ApiAnswer | ApiLoss): void => {
      if (end.kind === 'answer' && end.code === 404) return this.#create()
      if (end.kind === 'answer' && end.code === 200) return this.#seen(end.body)
      this.#failed(end, 'get')
    }
    this.#work.open(this.#options.api.get(path, done), ANSWER_MS, () => done(NO_ANSWER))
  }

  #seen(lease: unknown): void {
    const { clock, leaseMs, node, random, onOther } = this.#options
    const isNew = this.#note(lease)
    const isOld = clock.now() - this.#changedAt >= leaseMs
    if (this.#holder === '' || this.#holder === node || isOld) return this.#take()
    this.#heldUntil = Number.NEGATIVE_INFINITY
    this.#well()
    if (isNew) onOther()
    this.#work.wait(halfToWhole(random, leaseMs), () => this.#look())
  }

  /** Notes what the server has. Returns true if it is new. */
  #note(lease: unknown): boolean {
    const version = readVersion(lease) ?? ''
    this.#holder = textAt(fieldAt(lease, 'spec'), 'holderIdentity') ?? ''
    if (version === this.#version) return false
    this.#version = version
    this.#changedAt = this.#options.clock.now()
    return true
  }

  #create(): void {
    const metadata = { name: LEASE_NAME }
    const { apiVersion, kind } = LEASES
    const body = { apiVersion, kind, metadata, spec: this.#spec }
    const done = this.#written('create')
    this.#work.open(this.#options.api.change('POST', this.#path, body, done), ANSWER_MS, () =>
      done(NO_ANSWER),
    )
  }

  #take(): void {
    const done = this.#written('patch')
    this.#work.open(this.#change(this.#spec, done), ANSWER_MS, () => done(NO_ANSWER))
  }

  /** Changes the Lease, if it is still the known version. */
  #change(spec: object, done: (end: ApiAnswer | ApiLoss) => void): ApiRequest {
    const body = { metadata: { resourceVersion: this.#version }, spec }
    return this.#options.api.change('PATCH', `${this.#path}/${LEASE_NAME}`, body, done)
  }

  /** Begins a request that takes or renews the Lease. Returns what its answer does. */
  #written(verb: Verb): (end: ApiAnswer | ApiLoss) => void {
    const { leaseMs, clock } = this.#options
    const until = clock.now() + (leaseMs * 2) / 3
    return (end) => {
      if (end.kind !== 'answer' || end.code > 201) return this.#failed(end, verb)
      this.#note(end.body)
      this.#well()
      this.#heldUntil = until
      this.#work.wait(leaseMs / 3, () => this.#take())
    }
  }

  #well(): void {
    this.#reason = ''
    this.#isForbidden = false
    this.#backoff.reset()
  }

  #failed(end: ApiAnswer | ApiLoss, verb: Verb): void {
    const { random, namespace } = this.#options
    const status = end.kind === 'answer' ? statusOfAnswer(end) : undefined
    this.#isForbidden = status?.code === 403
    if (this.#isForbidden) {
      this.#reason = `a right is missing: add ${describeRule({ collection: LEASES, namespace }, verb)}`
      return this.#work.wait(halfToWhole(random, SLOW_MS), () => this.#look())
    }
    // A conflict is no fault: another node was faster.
    const isConflict = status?.code === 409
    if (!isConflict) this.#reason = describeEnd(end)
    this.#work.wait(this.#backoff.next(status?.retryAfterMs), () => this.#look())
  }

  get #path(): string {
    return `${groupPath(LEASES)}/namespaces/${encodeURIComponent(this.#options.namespace)}/leases`
  }

  get #spec(): object {
    const { node, leaseMs, clock } = this.#options
    return {
      holderIdentity: node,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      // A time of the API with microseconds has exactly six digits.
      renewTime: new Date(clock.wall()).toISOString().replace('Z', '000Z'),
    }
  }
}
