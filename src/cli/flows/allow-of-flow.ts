// `allowOfFlow` finds the line of an allow-list that would allow what a flow reports as refused. `--allow` takes the same text.

import { isWorldPeer } from '../../admin/page/allow-lines.ts'
import { allowName, allowText } from '../../policy/allow-text.ts'
import { isDnsConnection } from '../../policy/dns-connection.ts'
import { listOf, numberOf, textOf } from '../fields.ts'
import type { FlowFields } from './flow-fields.ts'

/** Returns the line. Undefined for a flow that is no refusal, and if no line of an allow-list helps. */
export function allowOfFlow(flow: FlowFields): string | undefined {
  switch (flow.kind) {
    case 'denied':
    case 'audited':
      return typeof flow.name === 'string' && typeof flow.reason !== 'string'
        ? allowName(flow.name)
        : undefined
    case 'drop':
    case 'audit':
      return allowOfPacket(flow)
    default:
      return undefined
  }
}

/** True for a packet to a DNS server that no rule allows. Such a packet is never to be allowed (dns-connection.ts). */
export function isDnsDrop({ kind, protocol, port, deniedBy }: FlowFields): boolean {
  const isPacket = kind === 'drop' || kind === 'audit'
  return isPacket && deniedBy === 'default' && isDnsConnection(textOf(protocol), numberOf(port))
}

/** True for a packet to an address whose name has expired. The name is to be asked again. */
export function hasExpired({ expiredName }: FlowFields): boolean {
  return typeof expiredName === 'string'
}

function allowOfPacket(flow: FlowFields): string | undefined {
  if (flow.deniedBy !== 'default' || isDnsDrop(flow) || hasExpired(flow)) return undefined
  const [name] = listOf(flow.names).map(textOf)
  if (name === undefined && !isWorldPeer(listOf(flow.labels).map(textOf))) return undefined
  const protocol = textOf(flow.protocol)
  return allowText({ host: name ?? textOf(flow.peer), port: numberOf(flow.port), protocol })
}
