// Folds flows into the rows of refusals that the page shows: equal refusals are one row with a count. A row has the rules behind the
// refusal, the line that would allow it, and the question for `explain`.

import { deniedWords } from '../../flows/record/flow-words.ts'
import { addressRemedy, askNameAgain } from '../../policy/allow-text.ts'
import { ASK_AGAIN, isDnsConnection } from '../../policy/dns-connection.ts'
import type {
  DnsFlowShape,
  FlowRuleShape,
  FlowShape,
  PacketFlowShape,
} from '../document/flow-shapes.ts'
import { linesForName, linesForPacket, type AllowLines } from './allow-lines.ts'

export interface RefusalRow {
  /** Equal refusals have the same key. */
  readonly key: string
  /** How many refusals the row stands for, since the last row with this key. */
  count: number
  /** Time of the last of them. */
  time: string
  readonly verdict: 'deny' | 'audit'
  readonly kind: FlowShape['kind']
  readonly endpoint: string | null
  /** For example `www.shop.test` or `203.0.113.9 443/TCP`. */
  readonly what: string
  /** The types of the refused queries, such as A and AAAA. Empty for a packet. */
  types: readonly string[]
  readonly names: readonly string[]
  readonly reason: string | null
  /** True if the address of a packet is guarded, so that no name opens it. */
  readonly guarded: boolean
  readonly rules: readonly FlowRuleShape[]
  /** True if a deny rule refused, which no allow rule can outweigh. */
  readonly isDenyRule: boolean
  readonly allow: AllowLines | null
  /** What to do where no line of policy is the remedy. Null where `allow` is, and where nothing helps. */
  readonly remedy: string | null
  /** The body of a request to explain. Null when there is nothing to explain, and when the endpoint is gone. */
  readonly question: Readonly<Record<string, string>> | null
}

export class Folded {
  readonly #rows = new Map<string, RefusalRow>()
  readonly #max: number
  readonly #isEndpoint: (name: string) => boolean
  /** Refusals that found no room among the rows. */
  left = 0

  /** `isEndpoint`: true if there is an endpoint of this name now. */
  constructor(max: number, isEndpoint: (name: string) => boolean) {
    this.#max = max
    this.#isEndpoint = isEndpoint
  }

  add(flow: FlowShape): void {
    if (flow.verdict !== 'deny' && flow.verdict !== 'audit') return
    if (flow.kind === 'policy-lost' || flow.kind === 'expired-use') return
    const what = isPacket(flow) ? packetText(flow) : (flow.name ?? '(name not kept)')
    // The types of a name are not in the key: most programs ask for A and AAAA together.
    const key = [flow.kind, flow.endpoint ?? '', what, flow.reason ?? ''].join('\n')
    const known = this.#rows.get(key)
    if (known !== undefined) {
      known.count++
      known.time = flow.time
      known.types = [...new Set([...known.types, ...typesOf(flow)])]
    } else if (this.#rows.size >= this.#max) {
      this.left++
    } else {
      const row = isPacket(flow) ? packetRow(flow, key, what) : dnsRow(flow, key, what)
      const isThere = flow.endpoint !== null && this.#isEndpoint(flow.endpoint)
      this.#rows.set(key, isThere ? row : { ...row, question: null })
    }
  }

  get rows(): readonly RefusalRow[] {
    return [...this.#rows.values()]
  }
}

function isPacket(flow: DnsFlowShape | PacketFlowShape): flow is PacketFlowShape {
  return flow.kind === 'drop' || flow.kind === 'audit'
}

function dnsRow(flow: DnsFlowShape, key: string, what: string): RefusalRow {
  const { endpoint, name, reason, rules } = flow
  return {
    ...common(flow, key, what),
    names: [],
    reason: reason === null ? null : deniedWords(reason),
    guarded: false,
    rules,
    isDenyRule: false,
    allow: flow.kind === 'denied' || flow.kind === 'audited' ? (linesForName(flow) ?? null) : null,
    remedy: reason === null && name !== null ? (addressRemedy(name) ?? null) : null,
    question: endpoint === null || name === null ? null : { endpoint, ask: name },
  }
}

function packetRow(flow: PacketFlowShape, key: string, what: string): RefusalRow {
  const { endpoint, names, peer, port, protocol, reason, guarded, rules } = flow
  const hasPort = port > 0 && /^(?:TCP|UDP|SCTP)$/i.test(protocol)
  return {
    ...common(flow, key, what),
    names,
    reason,
    guarded,
    rules,
    isDenyRule: flow.deniedBy === 'rule',
    allow: linesForPacket(flow) ?? null,
    remedy: flow.deniedBy === 'default' ? remedyOf(flow) : null,
    question:
      endpoint === null || !hasPort
        ? null
        : { endpoint, address: peer, port: `${port}/${protocol.toUpperCase()}` },
  }
}

function remedyOf({ expiredName, protocol, port }: PacketFlowShape): string | null {
  if (expiredName !== null) return askNameAgain(expiredName)
  return isDnsConnection(protocol, port) ? ASK_AGAIN : null
}

function common(flow: FlowShape, key: string, what: string) {
  const { time, kind, endpoint } = flow
  const verdict = flow.verdict === 'audit' ? flow.verdict : 'deny'
  return { key, count: 1, time, verdict, kind, endpoint, what, types: typesOf(flow) } as const
}

function typesOf(flow: FlowShape): readonly string[] {
  return 'type' in flow ? [flow.type] : []
}

function packetText({ peer, port, protocol }: PacketFlowShape): string {
  return port === 0 ? `${peer} ${protocol}` : `${peer} ${port}/${protocol}`
}
