// Reads a cluster: one reflector for each collection, and the objects that they know. `restore` puts the objects of the daemon before in
// force, `start` begins to ask the server. A lost server changes nothing that is in force.

import type { Clock } from '../core/clock.ts'
import type { RandomPool } from '../core/random.ts'
import { isMapping } from '../documents/source-document.ts'
import type { Config } from '../config/config.ts'
import type { ReceivedObjects } from '../sources/files/given-items.ts'
import type { Log } from '../telemetry/log.ts'
import { ClusterObjects, type ClusterObjectsOptions } from './cluster/cluster-objects.ts'
import { BADNESS, warningsOf, type CollectionStatus } from './collection-status.ts'
import { unknownPodsOf, type UnknownPods } from './unknown-pods.ts'
import { targetsOf, type Collection, type Target } from './reflector/collections.ts'
import type { CollectionState } from './reflector/collection-events.ts'
import { EnforcementTimes } from './cluster/enforcement-times.ts'
import type { ApiWriter } from './connection/api-port.ts'
import type { TextKeeper } from '../sources/files/last-good-texts.ts'
import { KeptObjects } from './cluster/kept-objects.ts'
import type { Placement } from './cluster/placements.ts'
import { PolicyEvents } from './events/policy-events.ts'
import { WHY_NOT } from './cluster/pods.ts'
import { sumOf } from './reflector/reflector-counts.ts'
import { Reflector } from './reflector/reflector.ts'
import { RelistGate } from './reflector/relist-gate.ts'

export type KubernetesConfig = NonNullable<Config['kubernetes']>

export interface KubernetesOptions {
  readonly config: KubernetesConfig
  readonly clock: Clock
  readonly log: Log
  readonly random: RandomPool
  /** `stop` closes it. */
  readonly api: ApiWriter & { close(): void }
  /** The address of the server, for views. */
  readonly server: string
  /** `limits.peers`. */
  readonly peersMax: number
  /** The name of this node in the cluster. */
  readonly node: string
  /** Keeps the objects over restarts. Undefined: a start without the server has no objects. */
  readonly keeper: TextKeeper | undefined
  readonly parsePolicy: ClusterObjectsOptions['parsePolicy']
  readonly interfaceOf: ClusterObjectsOptions['interfaceOf']
  /** Puts a change in force. Returns true if it is not in force yet: `times.inForce` then says when it is. */
  readonly onChange: (change: ReceivedObjects) => boolean
}

const MS_PER_SECOND = 1000

/** One target of a collection with its reflector. */
interface Part {
  readonly target: Target
  readonly reflector: Reflector
  /** True when the first look at the target has ended. */
  isSettled: boolean
  /** True if an object could not be read since the last list. */
  hasMalformed: boolean
  state: CollectionState
  reason: string
  /** The time of `Clock.now` at which the objects were known to be current. Undefined: never. */
  currentAt: number | undefined
}

export class Kubernetes {
  readonly objects: ClusterObjects
  readonly server: string
  readonly times: EnforcementTimes
  /** Undefined without `events.enabled`. */
  readonly events: PolicyEvents | undefined
  readonly #options: KubernetesOptions
  readonly #kept: KeptObjects | undefined
  readonly #parts: readonly Part[]
  readonly #collections: readonly Collection[]
  #version = ''

  constructor(options: KubernetesOptions) {
    const { config, keeper, node } = options
    const names = [...config.collections, ...(config.peers === 'watch' ? ['peers'] : [])]
    const targets = targetsOf({ ...config, names, node })
    this.#options = options
    this.server = options.server
    this.times = new EnforcementTimes(options.clock)
    this.#kept = keeper && new KeptObjects(keeper)
    this.#collections = [...new Set(targets.map(({ collection }) => collection))]
    this.objects = new ClusterObjects({
      ...options,
      ...config,
      collections: this.#collections,
      kept: this.#kept,
      onChange: (change, since) => this.#change(change, since),
      onHold: (collection, isHolding) => this.#reportHold(collection, isHolding),
    })
    this.events = config.events.enabled
      ? new PolicyEvents({ ...options, ...config.events, policies: this.objects })
      : undefined
    const gate = new RelistGate()
    this.#parts = targets.map((target) => this.#newPart(target, gate))
  }

  /** The version of the server. Empty before its first answer. */
  get version(): string {
    return this.#version
  }

  /** The texts of the kept objects by name, for an image of the state. */
  get texts(): ReadonlyMap<string, string> | undefined {
    return this.#kept?.texts
  }

  /** Why the daemon is not ready: a collection was never listed, and nothing of it is kept. Empty when there is no such reason. */
  get notReady(): readonly string[] {
    if (this.objects.isComplete) return []
    const waiting = this.#parts.filter(({ state }) => state === 'listing' || state === 'away')
    return waiting.map(({ target, reason }) => {
      return `${target.collection.resource} of the cluster are not known yet: ${reason}`
    })
  }

  get collections(): readonly CollectionStatus[] {
    return this.#collections.map((collection) => this.#statusOf(collection))
  }

  /** True while the server shows every collection, or does not have it. */
  get isReachable(): boolean {
    return this.#parts.every(({ state }) => state !== 'away' && state !== 'forbidden')
  }

  /** The sum of a counter of all reflectors, by key: lists by cause, requests by status. */
  counts(of: 'lists' | 'requests'): ReadonlyMap<string, number> {
    return sumOf(this.#parts.map(({ reflector }) => reflector.counts[of]))
  }

  /** Sentences about collections that are not current, and about missing rights. */
  get warnings(): readonly string[] {
    return [...this.collections.flatMap(warningsOf), ...(this.events?.warnings ?? [])]
  }

  get unknownPods(): UnknownPods {
    const { config } = this.#options
    const { count, waiting } = this.objects.peers
    const parts = this.#parts.filter(({ target }) => target.collection.kind === 'Peer')
    return unknownPodsOf({ ...config, count, waiting, parts })
  }

  /** Pods of this node that are no endpoints, by reason. */
  get leftOut(): ReadonlyMap<string, number> {
    return this.objects.pods.leftOut
  }

  /** Removes the policies that are held. Returns how many. */
  accept(): number {
    return this.objects.accept()
  }

  /** Notes where the network plugin put a pod. `whyNot` then says if it is an endpoint. */
  place(placement: Placement): void {
    this.objects.place(placement)
  }

  displace(placement: Pick<Placement, 'namespace' | 'name' | 'uid'>): void {
    this.objects.displace(placement)
  }

  /** Why a pod is no endpoint. Undefined if it is one. */
  whyNot(placement: Pick<Placement, 'namespace' | 'name' | 'uid'>): string | undefined {
    if (!this.objects.isComplete) return 'the objects of the cluster are not known yet'
    const why = this.objects.pods.whyNot(placement)
    return why && WHY_NOT[why]
  }

  /** Gives the objects of the daemon before to the sources. */
  restore(): void {
    this.objects.restore()
  }

  start(): void {
    this.#options.api.get('/version', (end) => {
      const body = end.kind === 'answer' ? end.body : undefined
      if (isMapping(body) && typeof body['gitVersion'] === 'string')
        this.#version = body['gitVersion']
    })
    for (const { reflector } of this.#parts) reflector.start()
    this.events?.start()
  }

  stop(): void {
    for (const { reflector } of this.#parts) reflector.stop()
    this.events?.stop()
    this.#options.api.close()
    this.objects.stop()
  }

  #change(change: ReceivedObjects, since: number): void {
    this.times.begin(change, since)
    if (!this.#options.onChange(change)) this.times.forget()
  }

  #newPart(target: Target, gate: RelistGate): Part {
    const { api, clock, random, config, log } = this.#options
    const { collection, namespace } = target
    const { kind } = collection
    const { spreadMs } = config
    const part: Part = {
      target,
      state: 'listing',
      reason: '',
      currentAt: undefined,
      isSettled: false,
      hasMalformed: false,
      reflector: new Reflector({
        target,
        api,
        clock,
        random,
        gate,
        spreadMs,
        events: {
          onList: (objects) => {
            this.objects.list(collection, namespace, objects, part.hasMalformed)
            part.hasMalformed = false
            this.#settle(part, true)
          },
          onChange: (object) => this.objects.change(collection, object),
          onRemove: (object) => this.objects.remove(collection, object),
          onState: (state, reason) => this.#enter(part, state, reason),
          onCurrent: () => {
            part.currentAt = clock.now()
          },
          onMalformed: (fault) => {
            part.hasMalformed = true
            log.warn({ objects: kind, fault }, 'object of the cluster left out')
          },
        },
      }),
    }
    return part
  }

  #enter(part: Part, state: CollectionState, reason: string): void {
    const { log } = this.#options
    const { collection } = part.target
    const { kind } = collection
    if (state === 'away' || state === 'forbidden')
      log.warn({ objects: kind, reason }, 'cluster: what is known stays in force')
    else if (state !== part.state) log.info({ objects: kind, reason }, `cluster: ${state}`)
    part.state = state
    part.reason = reason
    if (state === 'absent') this.objects.kindGone(collection)
    if (state === 'absent' || state === 'forbidden') this.#settle(part, false)
  }

  /** Notes that the first look at a target has ended. The collection is settled when all its targets are. */
  #settle(part: Part, isCurrent: boolean): void {
    const { clock } = this.#options
    if (isCurrent) part.currentAt = clock.now()
    part.isSettled = true
    const { collection } = part.target
    if (this.#partsOf(collection).every(({ isSettled }) => isSettled))
      this.objects.settle(collection)
  }

  #partsOf(collection: Collection): readonly Part[] {
    return this.#parts.filter(({ target }) => target.collection === collection)
  }

  /** The worst state of the targets of a collection. */
  #statusOf(collection: Collection): CollectionStatus {
    const parts = this.#partsOf(collection)
    const worst = parts.toSorted((a, b) => BADNESS[b.state] - BADNESS[a.state])[0]
    const holdMs = this.objects.holdOf(collection)
    const ages = parts.map(({ currentAt }) => this.#ageOf(currentAt))
    const reason =
      holdMs === undefined
        ? (worst?.reason ?? '')
        : `held for ${Math.ceil(holdMs / MS_PER_SECOND)} s more`
    return {
      kind: collection.kind,
      state: holdMs === undefined ? (worst?.state ?? 'listing') : 'held',
      reason,
      ...this.objects.countsOf(collection),
      age: ages.includes(-1) ? -1 : Math.max(...ages),
    }
  }

  #ageOf(currentAt: number | undefined): number {
    if (currentAt === undefined) return -1
    return Math.round((this.#options.clock.now() - currentAt) / MS_PER_SECOND)
  }

  #reportHold({ kind }: Collection, isHolding: boolean): void {
    const { log } = this.#options
    if (!isHolding) return log.warn({ objects: kind }, 'cluster: the held removals are in force')
    const what = 'many policies were removed at once, and stay in force for a while'
    log.error(
      { objects: kind },
      `cluster: ${what}: \`namegate kubernetes accept\` removes them now`,
    )
  }
}
