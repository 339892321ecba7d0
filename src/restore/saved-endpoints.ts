// Saved endpoints. After a restart the same workload at the same place keeps its endpoint number, and so everything that it
// learned, even when the kernel's maps say nothing about it. The workload behind an interface or a cgroup counts as the same
// while the kernel gives the hook the same number. After a reboot it never does.

import { endpointId, generation, type EndpointId, type Generation } from '../core/ids.ts'
import { formatPrefix, parsePrefix, type Prefix } from '../core/ip.ts'
import type { Endpoint, EndpointHook } from '../endpoints/registry.ts'
import type { SavedState } from './state-port.ts'
import type { SavedDocument } from './state-port.ts'

/** The place that identifies an endpoint. */
export interface EndpointPlace {
  readonly addresses: readonly Prefix[]
  readonly hook: EndpointHook
}

/** An endpoint as it was saved. */
export interface SavedEndpoint extends EndpointPlace {
  readonly name: string
}

interface Written {
  readonly name: string
  readonly place: string
  /** The kernel's number of the hook; empty without a hook, or when the hook did not exist. */
  readonly hookKey: string
}

export interface NumberedEndpoint {
  readonly id: EndpointId
  readonly generation: Generation
}

/** The document of an endpoint; `hookKey` as of `Datapath.hookKey`. */
export function endpointDocument(endpoint: Endpoint, hookKey: string | undefined): SavedDocument {
  const { id, name } = endpoint
  const written = { name, place: placeText(endpoint), hookKey: hookKey ?? '' }
  return { kind: 'endpoint', key: String(id), text: JSON.stringify(written) }
}

export function endpointGone(id: EndpointId): SavedDocument {
  return { kind: 'endpoint', key: String(id), text: undefined }
}

export class SavedEndpoints {
  /** By place and hook. */
  readonly #byPlace = new Map<string, EndpointId>()
  /** Endpoints that came back. They own the entries under their numbers. */
  readonly #same = new Set<EndpointId>()
  readonly #all: SavedEndpoint[] = []
  readonly #isThisBoot: boolean
  #highest = 0

  /** Skips records that it cannot parse. Their workloads begin anew. */
  constructor(saved: Pick<SavedState, 'endpoints' | 'isThisBoot'>) {
    this.#isThisBoot = saved.isThisBoot
    for (const [key, text] of saved.endpoints) {
      const id = Number(key)
      const written = parseWritten(text)
      if (!Number.isSafeInteger(id) || id < 1 || written === undefined) continue
      this.#highest = Math.max(this.#highest, id)
      this.#byPlace.set(keyOf(written.place, written.hookKey), endpointId(id))
      const place = parsePlace(written.place)
      if (place !== undefined) this.#all.push({ name: written.name, ...place })
    }
  }

  /** All saved endpoints, whether they came back or not. */
  get all(): readonly SavedEndpoint[] {
    return this.#all
  }

  /** The highest number in use before. */
  get highest(): number {
    return this.#highest
  }

  /** Whether a saved endpoint came back. */
  isSame(id: EndpointId): boolean {
    return this.#same.has(id)
  }

  /** The number of the saved endpoint at this place. Undefined when there is none, or when it was taken already. */
  take(place: EndpointPlace, hookKey: string | undefined): NumberedEndpoint | undefined {
    const id = this.#find(place, hookKey)
    if (id === undefined || this.#same.has(id)) return undefined
    this.#same.add(id)
    return { id, generation: generation(id) }
  }

  /** The kernel has an endpoint at this place under this number. It owns the saved entries only if the numbers agree. */
  adopt(id: EndpointId, place: EndpointPlace, hookKey: string): void {
    if (this.#find(place, hookKey) === id) this.#same.add(id)
  }

  #find(place: EndpointPlace, hookKey: string | undefined): EndpointId | undefined {
    if (place.hook.kind !== 'none' && (!this.#isThisBoot || hookKey === undefined)) return undefined
    return this.#byPlace.get(keyOf(placeText(place), hookKey ?? ''))
  }
}

function keyOf(place: string, hookKey: string): string {
  return `${place} ${hookKey}`
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
  return typeof place === 'string' && typeof hookKey === 'string'
    ? { name, place, hookKey }
    : undefined
}

/** The inverse of `placeText`. A cgroup's path may contain blanks; addresses contain none. */
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

/** The inverse of `hookText`. */
function parseHook(text: string): EndpointHook | undefined {
  if (text === 'none') return { kind: 'none' }
  const [kind = '', name = '', side = ''] = text.split(':')
  if (kind === 'cgroup') return { kind, path: text.slice(kind.length + 1) }
  if (kind !== 'interface' || name === '') return undefined
  return side === 'ingress' || side === 'egress' ? { kind, name, side } : undefined
}
