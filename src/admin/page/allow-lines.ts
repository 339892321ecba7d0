// Makes the lines of policy that would allow what a flow was refused: as a line of an allow-list, and as items under `egress` of a
// CiliumNetworkPolicy. There is no such line for a refusal that no allow rule can change.

import { parseAddress } from '../../core/ip.ts'
import type { DnsFlowShape, FlowRuleShape, PacketFlowShape } from '../document/flow-shapes.ts'

export interface AllowLines {
  /** Where the line belongs. `allow-list`: in a file NAME.allow. `policy`: under `egress` of a policy. */
  readonly form: 'allow-list' | 'policy'
  readonly text: string
}

const WITH_PORTS: readonly string[] = ['TCP', 'UDP', 'SCTP']

/** Lines that allow the name, and connections to it. Undefined when the name is not why the query was refused. */
export function linesForName(flow: DnsFlowShape): AllowLines | undefined {
  const { name, reason } = flow
  if (name === null || reason !== null || !isPlain(name)) return undefined
  if (wantsAllowList(flow.rules)) return { form: 'allow-list', text: name }
  return {
    form: 'policy',
    text: [
      '- toPorts:',
      '    - ports: [{ port: "53", protocol: ANY }]',
      `      rules: { dns: [{ matchName: "${name}" }] }`,
      `- toFQDNs: [{ matchName: "${name}" }]`,
    ].join('\n'),
  }
}

/** Lines that allow the packet. Undefined when a deny rule or no policy refused it. */
export function linesForPacket(flow: PacketFlowShape): AllowLines | undefined {
  if (flow.deniedBy !== 'default') return undefined
  const { port, rules } = flow
  const protocol = flow.protocol.toUpperCase()
  const hasPort = WITH_PORTS.includes(protocol) && port > 0
  const name = flow.names.find(isPlain)
  if (wantsAllowList(rules) && (name !== undefined || isWorld(flow))) {
    const bracketed = flow.peer.includes(':') && hasPort ? `[${flow.peer}]` : flow.peer
    const ports = hasPort ? `:${port}/${protocol.toLowerCase()}` : ''
    return { form: 'allow-list', text: `${name ?? bracketed}${ports}` }
  }
  const ports = hasPort
    ? `\n  toPorts: [{ ports: [{ port: "${port}", protocol: ${protocol} }] }]`
    : ''
  return { form: 'policy', text: `- ${peerText(flow, name)}${ports}` }
}

function peerText(flow: PacketFlowShape, name: string | undefined): string {
  if (name !== undefined) return `toFQDNs: [{ matchName: "${name}" }]`
  if (flow.labels.includes('reserved:host') || flow.labels.includes('host')) {
    return 'toEntities: [host]'
  }
  if (isWorld(flow)) {
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

/** True for an address of no endpoint, no resource and not of the node. */
function isWorld({ labels }: PacketFlowShape): boolean {
  return labels.every((label) => /^(?:reserved:)?world|^cidr:|^fqdn:|^unknown$/.test(label))
}

/** True if only allow-lists stand behind the refusal, so that a line of an allow-list is what the reader needs. */
function wantsAllowList(rules: readonly FlowRuleShape[]): boolean {
  return rules.length > 0 && rules.every(({ file }) => file.endsWith('.allow'))
}

/** True for a name that needs no escape in a policy. */
function isPlain(name: string): boolean {
  return /^[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?$/.test(name)
}
