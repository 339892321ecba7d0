// A model of an API server in memory: objects with versions, lists with pages, watches with history. It behaves as the real servers were
// observed to (test/kubernetes/conformance.test.ts compares them). It knows neither sockets nor time: MemoryApi and FakeApiServer add these.

import { EVENTS } from '../../../src/kubernetes/events/policy-event.ts'
import { LEASES } from '../../../src/kubernetes/events/writer-lease.ts'
import {
  COLLECTIONS,
  groupPath,
  type Resource,
} from '../../../src/kubernetes/reflector/collections.ts'
import { status, type Status } from './api-statuses.ts'

/** What the server has: what namegate reads, and what it writes. */
export const RESOURCES: readonly Resource[] = [...COLLECTIONS, EVENTS, LEASES]

export interface ModelObject {
  readonly [key: string]: unknown
  readonly metadata: { readonly [key: string]: unknown; readonly name: string }
}

export interface Stored extends ModelObject {
  readonly metadata: ModelObject['metadata'] & {
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
  }
}

export interface ModelEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: unknown
}

interface Change {
  readonly revision: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resource: string
  readonly object: Stored
}

export interface Watcher {
  readonly resource: string
  readonly from: number
  readonly bookmarks: boolean
  matches(object: Stored): boolean
  send(event: ModelEvent): void
  end(): void
}

export class ApiModel {
  /** True: as Kubernetes 1.36. False: as 1.20, which does not know watch-list. */
  readonly hasWatchList: boolean
  revision = 100
  compacted = 0
  /** What the cache of the server has. Lists that accept any version get the state of this revision. */
  lag = 0
  /** True while the server has started, and does not know all its definitions and rules yet. */
  isStarting = false
  /** `list pods`, `create events`, `get /readyz`: rights that are missing. */
  readonly denied = new Set<string>()
  readonly watchers = new Set<Watcher>()
  /** Resources whose definition exists. */
  readonly defined = new Set<string>(RESOURCES.map(({ resource }) => resource))
  #changes: Change[] = []
  readonly #objects = new Map<string, Map<string, Stored>>()
  #uids = 0

  constructor({ hasWatchList = true } = {}) {
    this.hasWatchList = hasWatchList
  }

  /** The objects of a resource, sorted by namespace and name. */
  all(resource: string): readonly Stored[] {
    const found = [...(this.#objects.get(resource) ?? new Map<string, Stored>())]
    return found.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  /** The objects as they were at a revision that is still in the history. */
  at(resource: string, revision: number): readonly Stored[] {
    const known = new Map(this.all(resource).map((each) => [keyOf(each), each]))
    for (const change of this.#changes.toReversed()) {
      if (change.revision <= revision || change.resource !== resource) continue
      const before = this.#before(change)
      if (before === undefined) known.delete(keyOf(change.object))
      else known.set(keyOf(change.object), before)
    }
    return [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  find(resource: string, name: string, namespace?: string): Stored | undefined {
    return this.#objects.get(resource)?.get(keyOf({ metadata: { name, namespace } }))
  }

  /** Creates or replaces an object. */
  put(resource: string, object: ModelObject): Stored {
    const objects = this.#objects.get(resource) ?? new Map<string, Stored>()
    this.#objects.set(resource, objects)
    const known = objects.get(keyOf(object))
    const revision = ++this.revision
    const uid = known?.metadata.uid ?? `uid-${++this.#uids}`
    const metadata = { ...object.metadata, uid, resourceVersion: String(revision) }
    const stored: Stored = { ...object, metadata }
    objects.set(keyOf(stored), stored)
    const type = known === undefined ? 'ADDED' : 'MODIFIED'
    this.#publish({ revision, type, resource, object: stored })
    return stored
  }

  remove(resource: string, name: string, namespace?: string): boolean {
    const known = this.find(resource, name, namespace)
    if (known === undefined) return false
    this.#objects.get(resource)?.delete(keyOf(known))
    const revision = ++this.revision
    const metadata = { ...known.metadata, resourceVersion: String(revision) }
    this.#publish({ revision, type: 'DELETED', resource, object: { ...known, metadata } })
    return true
  }

  /** Forgets the history up to now. */
  compact(): void {
    this.compacted = this.revision
    this.#changes = []
  }

  /** The version of a bookmark for a watch; undefined if it gets none. Kubernetes 1.20 knows only the versions of the kind itself. */
  progressOf({ resource, from }: Pick<Watcher, 'resource' | 'from'>): number | undefined {
    const own = this.#changes.findLast((each) => each.resource === resource)?.revision ?? 0
    const revision = this.hasWatchList ? this.revision : own
    return revision > from ? revision : undefined
  }

  /** Every watch that wants bookmarks gets one, if something has changed since it began. */
  bookmark(): void {
    for (const watcher of this.watchers) {
      const revision = watcher.bookmarks ? this.progressOf(watcher) : undefined
      if (revision !== undefined) watcher.send(this.bookmarkOf(watcher.resource, revision))
    }
  }

  bookmarkOf(resource: string, revision: number, isEnd = false): ModelEvent {
    const annotations = isEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
    const metadata = { resourceVersion: String(revision), creationTimestamp: null, ...annotations }
    return { type: 'BOOKMARK', object: { ...this.kindOf(resource), metadata } }
  }

  /** The definition and its objects go: every watch gets DELETED for each object, and ends. */
  undefine(resource: string): void {
    for (const { metadata } of this.all(resource))
      this.remove(resource, metadata.name, metadata.namespace)
    this.defined.delete(resource)
    for (const watcher of this.watchers) {
      if (watcher.resource !== resource) continue
      this.watchers.delete(watcher)
      watcher.end()
    }
  }

  /** A backup of etcd takes the place of the state: versions go back. */
  restore(resource: string, objects: readonly Stored[], revision: number): void {
    this.revision = revision
    this.compacted = revision
    this.#changes = []
    this.#objects.set(resource, new Map(objects.map((each) => [keyOf(each), each])))
  }

  /** Adds a watch that gets the changes after `from`. */
  watch(watcher: Watcher): () => void {
    if (watcher.from < this.compacted) {
      watcher.send({ type: 'ERROR', object: status.tooOld(watcher.from, this.compacted) })
      watcher.end()
      return () => undefined
    }
    for (const change of this.#changes) this.#send(watcher, change)
    this.watchers.add(watcher)
    return () => this.watchers.delete(watcher)
  }

  kindOf(resource: string): { readonly apiVersion: string; readonly kind: string } {
    const { apiVersion, kind } = RESOURCES.find((each) => each.resource === resource) ?? {
      apiVersion: 'v1',
      kind: 'Unknown',
    }
    return { apiVersion, kind }
  }

  /** The discovery document of a path such as `/apis/cilium.io/v2`. */
  discover(path: string): { readonly resources: readonly unknown[] } | Status {
    const here = RESOURCES.filter((each) => groupPath(each) === path)
    const served = here.filter(({ resource }) => this.defined.has(resource))
    if (served.length === 0) return status.noPath()
    return {
      resources: served.map(({ resource, kind }) => ({ name: resource, kind, namespaced: true })),
    }
  }

  #publish(change: Change): void {
    this.#changes.push(change)
    for (const watcher of this.watchers) this.#send(watcher, change)
  }

  #send(watcher: Watcher, { revision, type, resource, object }: Change): void {
    if (resource !== watcher.resource || revision <= watcher.from || !watcher.matches(object))
      return
    watcher.send({ type, object: { ...this.kindOf(resource), ...object } })
  }

  /** The object before a change; undefined before it existed. */
  #before(change: Change): Stored | undefined {
    if (change.type === 'ADDED') return undefined
    const older = this.#changes.filter(
      ({ revision, resource, object }) =>
        revision < change.revision &&
        resource === change.resource &&
        keyOf(object) === keyOf(change.object),
    )
    return older.at(-1)?.object ?? change.object
  }
}

function keyOf({ metadata }: ModelObject): string {
  const { namespace, name } = metadata
  return `${typeof namespace === 'string' ? namespace : ''}/${name}`
}
