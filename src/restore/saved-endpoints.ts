// Endpoints as they are written down, so that after a restart the same workload at the same place is the same endpoint,
// with everything it learned: also where no kernel's maps say so. Who stands behind an interface or a cgroup is the same one
// as long as the kernel knows the hook by the same number, and never across a reboot.

import { endpointId, generation, type EndpointId, type Generation } from '../core/ids.ts'
import { formatPrefix, parsePrefix, type Prefix } from '../core/ip.ts'
import type { Endpoint, EndpointHook } from '../endpoints/registry.ts'
import type { SavedState } from './saved-state.ts'
import type { SavedDocument } from './state-sink.ts'

/** What decides who an endpoint is. */
export interface EndpointPlace {
  readonly addresses: readonly Prefix[]
  readonly hook: EndpointHook
}

/** An endpoint as it was written down. */
export interface SavedEndpoint extends EndpointPlace {
  readonly name: string
}

interface Written {
  readonly name: string
  readonly place: string
  /** What the kernel knew the hook by; empty where there is none or it was not there. */
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
  /** Those that are there again: what they learned is theirs. */
  readonly #same = new Set<EndpointId>()
  readonly #all: SavedEndpoint[] = []
  readonly #isThisBoot: boolean
  #highest = 0

  /** What cannot be understood is as if it were not there: its workload begins anew. */
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

  /** All that were there, whoever they were. */
  get all(): readonly SavedEndpoint[] {
    return this.#all
  }

  /** The highest number that was given. */
  get highest(): number {
    return this.#highest
  }

  /** Whether an endpoint of before is there again, as the very same. */
  isSame(id: EndpointId): boolean {
    return this.#same.has(id)
  }

  /** The number of the endpoint at this place, given once; undefined when it is another one or none. */
  take(place: EndpointPlace, hookKey: string | undefined): NumberedEndpoint | undefined {
    const id = this.#find(place, hookKey)
    if (id === undefined || this.#same.has(id)) return undefined
    this.#same.add(id)
    return { id, generation: generation(id) }
  }

  /** The kernel has an endpoint at this place under this number; what was written down of another one is not its own. */
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

/** The inverse of `placeText`. A cgroup's path may have blanks; addresses have none. */
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
