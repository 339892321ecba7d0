// FlowFacts is what a filter can ask about one flow. RingFacts reads it from the ring without making an object for each flow.

import type { Prefix } from '../../core/ip.ts'
import { NAME_OCTETS_MAX, parseName } from '../../core/name.ts'
import type { FlowKind } from '../../flows/record/flow-kinds.ts'
import type { FlowRing } from '../../flows/record/flow-ring.ts'
import { matches, type Pattern } from '../../policy/match/pattern.ts'
import { endpointOfFlow, type FlowParts } from './flow-endpoint.ts'

/** Names that match a pattern, or one name. */
export interface NameFilter {
  /** The name in wire form has its end at the first zero octet of a length. */
  readonly accepts: (name: Uint8Array) => boolean
  /** The octets that end every such name: of a pattern, the labels after the last star in wire form, with the final zero octet. */
  readonly tail: Uint8Array
}

export interface FlowFacts {
  readonly kind: FlowKind
  /** The name of the endpoint. Null if no endpoint is known. */
  readonly endpoint: string | null
  /** The IP protocol of a packet. */
  readonly protocol: number
  /** The port of a packet. */
  readonly port: number
  /** True if the flow has the name of a question, or one of the names of its peer matches. */
  hasName(filter: NameFilter): boolean
  /** True if the address of the peer or client is inside the prefix. */
  isInside(prefix: Prefix): boolean
}

/** Shows the flow `number` of the ring. The number must be at least `oldest` and less than `count`. */
export class RingFacts implements FlowFacts {
  number = 0
  readonly #ring: FlowRing
  readonly #parts: FlowParts
  readonly #name = new Uint8Array(NAME_OCTETS_MAX)

  constructor(parts: FlowParts) {
    this.#ring = parts.flows
    this.#parts = parts
  }

  get kind(): FlowKind {
    return this.#ring.kindOf(this.number)
  }

  get endpoint(): string | null {
    return endpointOfFlow(this.#parts, this.#ring.endpointOf(this.number))?.name ?? null
  }

  get protocol(): number {
    return this.#ring.protocolOf(this.number)
  }

  get port(): number {
    return this.#ring.portOf(this.number)
  }

  hasName(filter: NameFilter): boolean {
    const { kind } = this
    if (kind === 'drop' || kind === 'audit')
      return acceptsAny(filter, this.#ring.namesOf(this.number))
    const length = this.#ring.copyName(this.number, this.#name)
    return length > 0 && endsWith(this.#name, length, filter.tail) && filter.accepts(this.#name)
  }

  isInside({ family, octets, length }: Prefix): boolean {
    if (this.#ring.familyOf(this.number) !== family) return false
    return this.#ring.peerBits(this.number, octets, length) === length
  }
}

/** True if the filter accepts one of the names, which are texts. */
export function acceptsAny({ accepts }: NameFilter, names: readonly string[]): boolean {
  return names.some((text) => {
    const parsed = parseName(text)
    return parsed.kind === 'ok' && accepts(parsed.name)
  })
}

export function nameFilterOf(pattern: Pattern): NameFilter {
  const { labels } = pattern
  const literal = labels.slice(labels.findLastIndex((label) => label.includes('*')) + 1)
  const parsed = parseName(pattern.kind === 'every' ? '.' : literal.join('.'))
  const tail = parsed.kind === 'ok' ? parsed.name : new Uint8Array(0)
  return { accepts: (name) => matches(pattern, name), tail }
}

/** Accepts one name in wire form. No name is the beginning of another one, because of the final zero octet. */
export function oneNameFilter(wire: Uint8Array): NameFilter {
  return { accepts: (name) => wire.every((octet, i) => name[i] === octet), tail: wire }
}

/** True if the first `length` octets of `name` end with the octets of `tail`. */
function endsWith(name: Uint8Array, length: number, tail: Uint8Array): boolean {
  const from = length - tail.length
  if (from < 0) return false
  for (let i = 0; i < tail.length; i++) if (name[from + i] !== tail[i]) return false
  return true
}
