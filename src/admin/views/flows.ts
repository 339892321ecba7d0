// Shows flows as JSON: DNS decisions, packets that were dropped or would have been dropped without audit, and events.

import { VERDICT_WORDS } from '../../flows/record/flow-words.ts'
import { FLOW_KINDS, type FlowDetails, type FlowKind } from '../../flows/record/flow-kinds.ts'
import { identity } from '../../core/ids.ts'
import { formatAddress } from '../../core/ip.ts'
import { formatProtocol } from '../../core/protocol.ts'
import { formatRcode, formatType } from '../../dns/presentation.ts'
import { RESERVED_NAMES } from '../../identity/reserved.ts'
import type { FlowShape, FlowVerdict, PacketFlowShape } from '../document/flow-shapes.ts'
import { endpointOfFlow } from '../flows/flow-endpoint.ts'
import type { AdminState } from '../state.ts'
import { formatTime } from './rows.ts'

const VERDICTS: Readonly<Record<FlowKind, FlowVerdict>> = {
  forwarded: 'allow',
  answered: 'allow',
  denied: 'deny',
  audited: 'audit',
  'unknown-client': 'deny',
  'interface-mismatch': 'deny',
  'not-ready': 'error',
  malformed: 'error',
  overloaded: 'error',
  'upstream-failed': 'error',
  drop: 'deny',
  audit: 'audit',
  'policy-lost': 'event',
  'expired-use': 'event',
}

export function verdictOf(kind: FlowKind): FlowVerdict {
  return VERDICTS[kind]
}

/** Shown as the client of questions that namegate asked itself: by `namegate ask --as` or by `dns.prewarm`. */
const OWN_CLIENT = 'namegate'

/** The values that `verdict=` takes: a verdict, or a single kind. */
export const FLOW_FILTERS: readonly string[] = [
  ...new Set<string>([...Object.keys(VERDICT_WORDS), ...FLOW_KINDS]),
]

/** The flow with this number, which must still be in the ring. Undefined when the filter leaves it out. */
export function flowView(
  state: AdminState,
  number: number,
  filter: string | undefined,
): FlowShape | undefined {
  const flow = state.flows.get(number)
  const verdict = VERDICTS[flow.kind]
  if (filter !== undefined && filter !== verdict && filter !== flow.kind) return undefined
  const { kind } = flow
  const endpoint = endpointOfFlow(state, flow.endpoint)
  const endpointLabels = [...(endpoint?.labels ?? [])].sort()
  const base = { verdict, endpoint: endpoint?.name ?? null, endpointLabels }
  const time = formatTime(flow.time)
  if (kind === 'policy-lost') return { number, time, kind, ...base, policies: flow.reason }
  if (kind === 'expired-use') return { number, time, kind, ...base, ...expiredUseDetails(flow) }
  return kind === 'drop' || kind === 'audit'
    ? { number, time, kind, ...base, ...packetDetails(state, flow) }
    : { number, time, kind, ...base, ...dnsDetails(state, flow) }
}

/** A flow as text for a line on disk: the members of the JSON object, without braces, number and time. A line stands for equal flows. */
export function keptText(state: AdminState, number: number): string {
  const {
    number: _number,
    time: _time,
    ...rest
  } = flowView(state, number, undefined) ?? {
    number,
    time: '',
  }
  return JSON.stringify(rest).slice(1, -1)
}

function dnsDetails({ core }: AdminState, flow: FlowDetails) {
  const answered = flow.kind === 'answered'
  return {
    client: isOwn(flow) ? OWN_CLIENT : addressOf(flow),
    name: flow.name ?? null,
    type: formatType(flow.qtype),
    rcode: answered ? formatRcode(flow.rcode) : null,
    outcome: answered ? flow.outcome : null,
    addresses: flow.addresses,
    reason: flow.reason === '' ? null : flow.reason,
    rules: core.origins.places(flow.rule),
  }
}

/** True for a question that namegate asked in the name of an endpoint. Its client address is 0.0.0.0, which no client has. */
function isOwn({ peer }: FlowDetails): boolean {
  return peer.every((octet) => octet === 0)
}

function expiredUseDetails(flow: FlowDetails) {
  const names = flow.name === undefined ? [] : [flow.name]
  return { peer: addressOf(flow), names, expired: flow.expired }
}

function packetDetails({ core }: AdminState, flow: FlowDetails) {
  return {
    peer: addressOf(flow),
    protocol: formatProtocol(flow.protocol),
    port: flow.port,
    identity: flow.identity,
    labels: labelsOf(core, flow.identity),
    names: flow.names,
    expiredName: flow.name ?? null,
    guarded: isGuarded(core, flow),
    deniedBy: deniedBy(core, flow),
    rules: core.origins.places(flow.rule),
    reason: flow.reason,
  }
}

/** The address of a malformed packet is not known. */
function isGuarded({ guard }: AdminState['core'], { family, peer, reason }: FlowDetails): boolean {
  return reason !== 'malformed' && guard.isGuarded(family === 4 ? 4 : 6, peer, 0)
}

function deniedBy(
  { origins }: AdminState['core'],
  { rule, reason }: FlowDetails,
): PacketFlowShape['deniedBy'] {
  if (origins.hasRule(rule)) return 'rule'
  return reason === 'policy' || reason === 'fragment' ? 'default' : null
}

/** The labels of the identity now. Empty when the identity is no longer in use. */
function labelsOf({ allocator, labelSets }: AdminState['core'], id: number): readonly string[] {
  const reserved = RESERVED_NAMES.get(id)
  if (reserved !== undefined) return [reserved]
  const set = allocator.setOf(identity(id))
  return set === undefined ? [] : labelSets.format(set)
}

function addressOf({ family, peer }: FlowDetails): string {
  return formatAddress(family === 4 ? 4 : 6, peer)
}
