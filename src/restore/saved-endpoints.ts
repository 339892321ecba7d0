// SavedEndpoints recognizes the endpoints of the daemon before. If the same workload is still at the same place, its endpoint keeps its
// number and therefore all its entries. This works even if the kernel's maps have nothing about the endpoint. A workload at an interface
// or a cgroup is the same while the kernel's number of the hook is the same. After a reboot, no workload with a hook is the same.

import { endpointId, generation, type EndpointId, type Generation } from '../core/ids.ts'
import { formatPrefix, parsePrefix, type Prefix } from '../core/ip.ts'
import type { Endpoint, EndpointHook } from '../endpoints/registry.ts'
import type { SavedState } from './state-port.ts'
import type { SavedDocument } from './state-port.ts'

/** The place that identifies an endpoint. */
export interface EndpointPlace {
  readonly addresses: readonly Prefix[]
  readonly hook: EndpointHook
  /** The identity that a cluster gave the workload. */
  readonly uid?: string | undefined
}

/** A saved endpoint. */
export interface SavedEndpoint extends EndpointPlace {
  readonly name: string
}

interface Written {
  readonly name: string
  readonly place: string
  /** The kernel's number of the hook. Empty: the endpoint has no hook, or the hook did not exist. */
  readonly hookKey: string
  /** Absent for a workload of a file. */
  readonly uid?: string | undefined
}

export interface NumberedEndpoint {
  readonly id: EndpointId
  readonly generation: Generation
}

/** Returns the document that saves an endpoint. `hookKey` comes from `Datapath.hookKey`. */
export function endpointDocument(endpoint: Endpoint, hookKey: string | undefined): SavedDocument {
  const { id, name, uid } = endpoint
  const written = { name, place: placeText(endpoint), hookKey: hookKey ?? '', uid }
  return { kind: 'endpoint', key: String(id), text: JSON.stringify(written) }
}

/** Returns the document that says that an endpoint was removed. */
export function endpointGone(id: EndpointId): SavedDocument {
  return { kind: 'endpoint', key: String(id), text: undefined }
}

export class SavedEndpoints {
  /** Saved endpoints by place and by the kernel's number of the hook. */
  readonly #byPlace = new Map<string, EndpointId>()
  /** Endpoints that were recognized. The saved entries under their numbers are theirs. */
  readonly #same = new Set<EndpointId>()
  readonly #all: SavedEndpoint[] = []
  readonly #isThisBoot: boolean
  #highest = 0

  /** Skips records that it cannot parse. Workloads of these records get new endpoints. */
  constructor(saved: Pick<SavedState, 'endpoints' | 'isThisBoot'>) {
    this.#isThisBoot = saved.isThisBoot
    for (const [key, text] of saved.endpoints) {
      const id = Number(key)
      const written = parseWritten(text)
      if (!Number.isSafeInteger(id) || id < 1 || written === undefined) continue
      this.#highest = Math.max(this.#highest, id)
      this.#byPlace.set(keyOf(written), endpointId(id))
      const place = parsePlace(written.place)
      if (place !== undefined) this.#all.push({ name: written.name, ...place })
    }
  }

  /** All saved endpoints, including those that were not recognized. */
  get all(): readonly SavedEndpoint[] {
    return this.#all
  }

  /** The highest number of a saved endpoint, 0 without any. */
  get highest(): number {
    return this.#highest
  }

  /** Returns true if a saved endpoint was recognized. */
  isSame(id: EndpointId): boolean {
    return this.#same.has(id)
  }

  /** Returns the number of the saved endpoint at this place. Undefined: there is none, or its number was taken before. */
  take(place: EndpointPlace, hookKey: string | undefined): NumberedEndpoint | undefined {
    const id = this.#find(place, hookKey)
    if (id === undefined || this.#same.has(id)) return undefined
    this.#same.add(id)
    return { id, generation: generation(id) }
  }

  /** Call when the kernel has an endpoint at this place under the number `id`. If the saved number is the same, so is the endpoint. */
  adopt(id: EndpointId, place: EndpointPlace, hookKey: string): void {
    if (this.#find(place, hookKey) === id) this.#same.add(id)
  }

  #find(place: EndpointPlace, hookKey: string | undefined): EndpointId | undefined {
    if (place.hook.kind !== 'none' && (!this.#isThisBoot || hookKey === undefined)) return undefined
    return this.#byPlace.get(
      keyOf({ place: placeText(place), hookKey: hookKey ?? '', uid: place.uid }),
    )
  }
}

function keyOf({ place, hookKey, uid = '' }: Omit<Written, 'name'>): string {
  return `${place} ${hookKey} ${uid}`
}

function placeText({ addresses, hook }: EndpointPlace): string {
  return [hookText(hook), ...addresses.map(formatPrefix).sort()].join(' ')
}

function hookText(hook: EndpointHook): string {
  switch (hook.kind) {
    case 'interface':
      return `interface:${hook.name}:${hook.side}`
    case 'cgroup':
      return `cgroup:${hook.path}`
    case 'none':
      return 'none'
  }
}

function parseWritten(text: string): Written | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (!('place' in value) || !('hookKey' in value)) return undefined
  const { place, hookKey } = value
  const name = 'name' in value && typeof value.name === 'string' ? value.name : ''
  const uid = 'uid' in value && typeof value.uid === 'string' ? value.uid : undefined
  return typeof place === 'string' && typeof hookKey === 'string'
    ? { name, place, hookKey, uid }
    : undefined
}

/** Parses a text of `placeText`. The path of a cgroup can contain blanks; addresses contain none. */
function parsePlace(text: string): EndpointPlace | undefined {
  const words = text.split(' ')
  const addresses: Prefix[] = []
  for (;;) {
    const parsed = parsePrefix(words.at(-1) ?? '')
    if (words.length < 2 || parsed.kind !== 'ok') break
    addresses.unshift(parsed.prefix)
    words.pop()
  }
  const hook = parseHook(words.join(' '))
  return hook && { addresses, hook }
}

/** Parses a text of `hookText`. */
function parseHook(text: string): EndpointHook | undefined {
  if (text === 'none') return { kind: 'none' }
  const [kind = '', name = '', side = ''] = text.split(':')
  if (kind === 'cgroup') return { kind, path: text.slice(kind.length + 1) }
  if (kind !== 'interface' || name === '') return undefined
  return side === 'ingress' || side === 'egress' ? { kind, name, side } : undefined
}
