// A reflector of one collection over a model of the API server, on fake time. Steps of text make things happen, and the log says what the
// reflector asked and what it told its owner.

import {
  COLLECTIONS,
  targetOf,
  type Collection,
} from '../../../src/kubernetes/reflector/collections.ts'
import type { CollectionState } from '../../../src/kubernetes/reflector/collection-events.ts'
import type { KubernetesObject } from '../../../src/kubernetes/reflector/objects.ts'
import { Reflector } from '../../../src/kubernetes/reflector/reflector.ts'
import { RelistGate } from '../../../src/kubernetes/reflector/relist-gate.ts'
import { RandomPool } from '../../../src/core/random.ts'
import { parseDuration } from '../../../src/core/quantity.ts'
import { FakeClock } from '../fake-clock.ts'
import { ApiModel, type Stored } from './api-model.ts'
import { MemoryApi, type Fault } from './memory-api.ts'

/** How often the server sends bookmarks. */
const BOOKMARK_MS = 60_000

/** Each random part is half of its bound. */
const HALF = new RandomPool({ fill: (target) => target.fill(0x80) })

export interface LabOptions {
  readonly resource?: string
  readonly hasWatchList?: boolean
  readonly random?: RandomPool
  readonly spreadMs?: number
  /** Shared with other reflectors. */
  readonly clock?: FakeClock
  readonly gate?: RelistGate
}

export class ReflectorLab {
  readonly clock: FakeClock
  readonly model: ApiModel
  readonly api: MemoryApi
  readonly reflector: Reflector
  readonly log: string[] = []
  state: CollectionState = 'listing'
  /** What the owner knows, by UID. */
  readonly objects = new Map<string, KubernetesObject>()
  readonly collection: Collection
  /** When the owner last heard that its knowledge is current, in milliseconds of the clock. */
  currentAt = -1
  #logged = 0
  readonly #startedAt: number
  #backup: { readonly objects: readonly Stored[]; readonly revision: number } | undefined

  constructor({
    resource = 'networkpolicies',
    hasWatchList = true,
    random = HALF,
    spreadMs = 60_000,
    clock = new FakeClock(),
    gate = new RelistGate(),
  }: LabOptions = {}) {
    const collection = COLLECTIONS.find((each) => each.resource === resource)
    if (collection === undefined) throw new Error(`no collection has ${resource}`)
    this.collection = collection
    this.clock = clock
    this.#startedAt = clock.now()
    this.model = new ApiModel({ hasWatchList })
    this.api = new MemoryApi(this.model, this.clock)
    this.reflector = new Reflector({
      target: targetOf(collection, undefined, 'node-1'),
      api: this.api,
      clock: this.clock,
      random,
      gate,
      spreadMs,
      events: {
        onList: (objects) => this.#list(objects),
        onChange: (object) => {
          this.objects.set(object.metadata.uid, object)
          this.#note(`change ${object.metadata.name}`)
        },
        onRemove: (object) => {
          this.objects.delete(object.metadata.uid)
          this.#note(`remove ${object.metadata.name}`)
        },
        onState: (state, reason) => {
          this.state = state
          this.#note(`${state}${reason === '' ? '' : `: ${reason}`}`)
        },
        onCurrent: () => {
          this.currentAt = this.clock.now()
        },
        onMalformed: (fault) => this.#note(`malformed ${fault}`),
      },
    })
  }

  /** Runs steps such as `put a`, `pass 5s`, `fault limit= 500`. Returns the log of these steps. */
  run(steps: readonly string[]): readonly string[] {
    const from = this.log.length
    for (const step of steps) {
      this.#step(step)
      this.#requests()
    }
    return this.log.slice(from)
  }

  /** The names of what the owner knows, sorted. Many names are only counted. */
  get names(): readonly string[] {
    if (this.objects.size > 20) return [`${this.objects.size} objects`]
    return Array.from(this.objects.values(), ({ metadata }) => metadata.name).sort()
  }

  /** Lets time pass. The server sends bookmarks every minute. */
  pass(ms: number): void {
    const until = this.clock.now() + ms
    while (this.clock.now() < until) {
      const sinceMark = (this.clock.now() - this.#startedAt) % BOOKMARK_MS
      this.clock.advance(Math.min(BOOKMARK_MS - sinceMark, until - this.clock.now()))
      if ((this.clock.now() - this.#startedAt) % BOOKMARK_MS === 0) this.model.bookmark()
      this.#requests()
    }
  }

  #step(step: string): void {
    const { resource } = this.collection
    const [verb = '', first = '', second = ''] = step.split(' ')
    const namespace = this.collection.isNamespaced ? { namespace: 'shop' } : {}
    switch (verb) {
      case 'start':
        return this.reflector.start()
      case 'stop':
        return this.reflector.stop()
      case 'put':
        this.model.put(resource, {
          metadata: { name: first, ...namespace },
          spec: { nodeName: 'node-1' },
        })
        return this.clock.advance(0)
      case 'fill':
        for (let i = 0; i < Number(first); i++) this.#step(`put n${i}`)
        return
      case 'remove':
        this.model.remove(resource, first, namespace.namespace)
        return this.clock.advance(0)
      case 'bookmark':
        this.model.bookmark()
        return this.clock.advance(0)
      case 'pass':
        return this.pass(parseDuration(first) ?? 0)
      case 'drop':
        return this.api.drop()
      case 'away':
        this.api.isAway = true
        return this.api.drop()
      case 'back':
        this.api.isAway = false
        return
      case 'compact':
        return this.model.compact()
      case 'other':
        this.model.put('namespaces', { metadata: { name: 'other' } })
        return
      case 'lag':
        this.model.lag = Number(first)
        return
      case 'starting':
        this.model.isStarting = true
        return
      case 'ready':
        this.model.isStarting = false
        return
      case 'hide':
        this.model.denied.add('get /readyz')
        return
      case 'deny':
        this.model.denied.add(`${first} ${resource}`)
        return
      case 'allow':
        this.model.denied.delete(`${first} ${resource}`)
        return
      case 'undefine':
        this.model.undefine(resource)
        return this.clock.advance(0)
      case 'define':
        this.model.defined.add(resource)
        return
      case 'backup':
        this.#backup = { objects: this.model.all(resource), revision: this.model.revision }
        return
      case 'restore':
        if (this.#backup !== undefined)
          this.model.restore(resource, this.#backup.objects, this.#backup.revision)
        return
      case 'fault':
        this.api.faults.push({ path: first, fault: faultOf(second) })
        return
      default:
        throw new Error(`no step is called ${verb}`)
    }
  }

  #list(objects: readonly KubernetesObject[]): void {
    this.objects.clear()
    for (const each of objects) this.objects.set(each.metadata.uid, each)
    this.#note(`list ${this.names.join(' ')}`.trim())
  }

  #note(text: string): void {
    this.#requests()
    this.log.push(text)
  }

  /** Adds the requests since the last call to the log. A repeated line is one line with its number. */
  #requests(): void {
    for (const { path } of this.api.log.slice(this.#logged)) {
      const line = `> ${describePath(path)}`
      const [last = '', times = '1'] = this.log.at(-1)?.split(' x') ?? []
      if (last === line) this.log[this.log.length - 1] = `${line} x${Number(times) + 1}`
      else this.log.push(line)
    }
    this.#logged = this.api.log.length
  }
}

/** `500`, `429/5s` (Retry-After), `lost`, `silence`, `too-long`. */
function faultOf(text: string): Fault {
  if (text === 'lost' || text === 'silence' || text === 'too-long') return { kind: text }
  if (text.startsWith('[')) return { kind: 'lines', lines: parseLines(text) }
  const [code, wait] = text.split('/')
  const retry = wait === undefined ? {} : { retryAfterMs: parseDuration(wait) ?? 0 }
  return { kind: 'answer', code: Number(code), ...retry }
}

function parseLines(text: string): readonly unknown[] {
  const lines: unknown = JSON.parse(text)
  return Array.isArray(lines) ? lines : []
}

/** A request in a few words. */
function describePath(path: string): string {
  const url = new URL(path, 'https://api.test')
  const parameter = (name: string): string | null => url.searchParams.get(name)
  const version = parameter('resourceVersion')
  if (url.pathname === '/readyz') return 'ready?'
  if (parameter('sendInitialEvents') !== null) return 'watch-list'
  if (parameter('watch') !== null) return `watch from ${version}`
  if (parameter('continue') !== null) return 'page'
  if (parameter('resourceVersionMatch') !== null) return `list not older than ${version}`
  if (version !== null) return `list at ${version}`
  if (parameter('limit') !== null) return `list by ${parameter('limit')}`
  return /\/v\w+$/.test(url.pathname) ? 'discover' : 'list whole'
}
