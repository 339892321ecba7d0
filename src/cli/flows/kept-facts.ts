// KeptFacts shows a flow of the daemon's JSON to a filter, so that flows that are kept on disk are filtered as the daemon filters its ring.

import { acceptsAny, type FlowFacts, type NameFilter } from '../../admin/flows/flow-facts.ts'
import { containsPrefix, parseAddress, type Prefix } from '../../core/ip.ts'
import { parseProtocol } from '../../core/protocol.ts'
import { FLOW_KINDS, type FlowKind } from '../../flows/record/flow-kinds.ts'
import { listOf, numberOf } from '../fields.ts'
import type { FlowFields } from './flow-fields.ts'

export class KeptFacts implements FlowFacts {
  readonly #flow: FlowFields
  readonly kind: FlowKind

  private constructor(flow: FlowFields, kind: FlowKind) {
    this.#flow = flow
    this.kind = kind
  }

  /** Returns undefined for a line that is no flow, such as the count of flows that were lost. */
  static of(flow: FlowFields): KeptFacts | undefined {
    const kind = FLOW_KINDS.find((each) => each === flow.kind)
    return kind === undefined ? undefined : new KeptFacts(flow, kind)
  }

  get endpoint(): string | null {
    const { endpoint } = this.#flow
    return typeof endpoint === 'string' ? endpoint : null
  }

  get protocol(): number {
    const { protocol } = this.#flow
    return typeof protocol === 'string' ? (parseProtocol(protocol) ?? Number(protocol)) : 0
  }

  get port(): number {
    return numberOf(this.#flow.port)
  }

  hasName(filter: NameFilter): boolean {
    const { name, names } = this.#flow
    const texts = [name, ...listOf(names)].filter((each) => typeof each === 'string')
    return acceptsAny(filter, texts)
  }

  isInside(prefix: Prefix): boolean {
    const text = this.#flow.peer ?? this.#flow.client
    const address = typeof text === 'string' ? parseAddress(text) : undefined
    return address !== undefined && containsPrefix(prefix, address)
  }
}
