// Makes the lines of policy that would allow what a flow was refused: as a line of an allow-list, and as items under `egress` of a
// CiliumNetworkPolicy. There is no such line for a refusal that no allow rule can change.

import { parseAddress } from '../../core/ip.ts'
import { whyNoName } from '../../core/name-like.ts'
import { isAllowList } from '../../policy/allow-line.ts'
import { allowText } from '../../policy/allow-text.ts'
import { isDnsConnection } from '../../policy/dns-connection.ts'
import type { DnsFlowShape, FlowRuleShape, PacketFlowShape } from '../document/flow-shapes.ts'

export interface AllowLines {
  /** Where the line belongs. `allow-list`: in a file NAME.allow. `policy`: under `egress` of a policy. */
  readonly form: 'allow-list' | 'policy'
  /** The allow-list that refused, to which the line can be added. Null for a policy. */
  readonly file: string | null
  readonly text: string
}

const WITH_PORTS: readonly string[] = ['TCP', 'UDP', 'SCTP']

/** Lines that allow the name, and connections to it. Undefined when the name is not why the query was refused. */
export function linesForName(flow: DnsFlowShape): AllowLines | undefined {
  const { name, reason } = flow
  if (name === null || reason !== null || !isPlain(name) || whyNoName(name) !== undefined)
    return undefined
  const list = listBehind(flow.rules)
  if (list !== undefined) return { form: 'allow-list', file: list, text: name }
  return {
    form: 'policy',
    file: null,
    text: [
      '- toPorts:',
      '    - ports: [{ port: "53", protocol: ANY }]',
      `      rules: { dns: [{ matchName: "${name}" }] }`,
      `- toFQDNs: [{ matchName: "${name}" }]`,
    ].join('\n'),
  }
}

/**
 * Lines that allow the packet. Undefined when a deny rule or no policy refused it, for a packet to a DNS server, and for an
 * address whose name has expired.
 */
export function linesForPacket(flow: PacketFlowShape): AllowLines | undefined {
  if (flow.deniedBy !== 'default' || flow.expiredName !== null) return undefined
  if (isDnsConnection(flow.protocol, flow.port)) return undefined
  const { port, rules } = flow
  const protocol = flow.protocol.toUpperCase()
  const hasPort = WITH_PORTS.includes(protocol) && port > 0
  const name = flow.names.find(isPlain)
  const list = listBehind(rules)
  if (list !== undefined && (name !== undefined || isWorldPeer(flow.labels))) {
    const text = allowText({ host: name ?? flow.peer, port, protocol })
    if (text !== undefined) return { form: 'allow-list', file: list, text }
  }
  const ports = hasPort
    ? `\n  toPorts: [{ ports: [{ port: "${port}", protocol: ${protocol} }] }]`
    : ''
  return { form: 'policy', file: null, text: `- ${peerText(flow, name)}${ports}` }
}

function peerText(flow: PacketFlowShape, name: string | undefined): string {
  if (name !== undefined) return `toFQDNs: [{ matchName: "${name}" }]`
  if (flow.labels.includes('reserved:host') || flow.labels.includes('host')) {
    return 'toEntities: [host]'
  }
  if (isWorldPeer(flow.labels)) {
    const length = parseAddress(flow.peer)?.family === 6 ? 128 : 32
    return `toCIDR: ["${flow.peer}/${length}"]`
  }
  const labels = flow.labels.flatMap((label) => {
    const [key = '', ...value] = label.split('=')
    return key.startsWith('cidr:') || key.startsWith('fqdn:') || key.startsWith('reserved:')
      ? []
      : [`${JSON.stringify(key)}: ${JSON.stringify(value.join('='))}`]
  })
  return `toEndpoints: [{ matchLabels: { ${labels.join(', ')} } }]`
}

/** True for the labels of an address of no endpoint, no resource and not of the node. */
export function isWorldPeer(labels: readonly string[]): boolean {
  return labels.every((label) => /^(?:reserved:)?world|^cidr:|^fqdn:|^unknown$/.test(label))
}

/** The first allow-list behind the refusal. Undefined if another policy refused too, or if none did. */
function listBehind(rules: readonly FlowRuleShape[]): string | undefined {
  return rules.every(({ file }) => isAllowList(file)) ? rules[0]?.file : undefined
}

/** True for a name that needs no escape in a policy. */
function isPlain(name: string): boolean {
  return /^[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?$/.test(name)
}
