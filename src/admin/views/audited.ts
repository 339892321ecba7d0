// Counts what audit let pass since the start, for `status`.

import {
  DNS_VERDICTS,
  PACKET_VERDICTS,
  type EndpointCounts,
} from '../../flows/record/endpoint-verdicts.ts'
import type { StatusShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'

/** How many endpoints have counts of their own. */
const ENDPOINTS_MAX = 10
const QUERIES = DNS_VERDICTS.indexOf('audited')
const PACKETS = PACKET_VERDICTS.indexOf('audited')

export function auditedView(state: AdminState): StatusShape['audited'] {
  const { verdicts } = state.flows
  const endpoints = [...verdicts.read()]
    .flatMap(({ name, ...counts }) => (name === undefined ? [] : [{ name, ...auditedOf(counts) }]))
    .filter(({ queries, packets }) => queries + packets > 0)
    .sort((a, b) => b.queries + b.packets - a.queries - a.packets)
    .slice(0, ENDPOINTS_MAX)
  return { on: isOn(state), ...auditedOf(verdicts.total()), endpoints }
}

function auditedOf({ dns, packets }: Pick<EndpointCounts, 'dns' | 'packets'>): {
  readonly queries: number
  readonly packets: number
} {
  return { queries: dns[QUERIES] ?? 0, packets: packets[PACKETS] ?? 0 }
}

function isOn(state: AdminState): boolean {
  return (
    state.nodeAudit().on ||
    state.policies.policies.some(({ audited }) => audited === true) ||
    [...state.endpoints.registry].some((endpoint) => state.auditOf(endpoint).on)
  )
}
