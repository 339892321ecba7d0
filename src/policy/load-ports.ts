// `toPorts`: ports with protocols, and DNS rules on them. Port 0 is every port of the protocol; no protocol,
// or ANY, is TCP, UDP and SCTP, as in Cilium (ICMP has no ports and is never meant by a port).

import { PORT_PROTOCOLS, SCTP, TCP, UDP, type PortRange } from '../core/protocol.ts'
import type { FieldTable, Reader } from '../core/source-document.ts'
import { readNames } from './load-names.ts'
import type { Pattern } from './pattern.ts'
import type { PortRule, Rule } from './rule.ts'

const NOT_SUPPORTED = 'is not supported'

const PORT_RULE: readonly (readonly [string, true | string])[] = [
  ['ports', true],
  ['rules', true],
  ['terminatingTLS', NOT_SUPPORTED],
  ['originatingTLS', NOT_SUPPORTED],
  ['serverNames', NOT_SUPPORTED],
  ['listener', NOT_SUPPORTED],
]
const ALLOW_PORTS: FieldTable = new Map(PORT_RULE)
const DENY_PORTS: FieldTable = new Map([
  ...PORT_RULE,
  ['rules', 'is not supported in egressDeny: deny the port itself'],
])

const L7_RULES: FieldTable = new Map<string, true | string>([
  ['dns', true],
  ['http', NOT_SUPPORTED],
  ['kafka', NOT_SUPPORTED],
  ['l7', NOT_SUPPORTED],
  ['l7proto', NOT_SUPPORTED],
])

const PORT: FieldTable = new Map([
  ['port', true],
  ['endPort', true],
  ['protocol', true],
])

const PROTOCOLS: ReadonlyMap<string, readonly number[]> = new Map([
  ['', PORT_PROTOCOLS],
  ['ANY', PORT_PROTOCOLS],
  ['TCP', [TCP]],
  ['UDP', [UDP]],
  ['SCTP', [SCTP]],
])
/** Protocols that Cilium knows and have no meaning here. */
const OTHER_PROTOCOLS = /^(ICMP|ICMPV6|VRRP|IGMP|GRE|IPIP|IPV6|ESP|AH)$/

const PORT_FORM = 'a port from 0 to 65535'

/** Reads all entries; an empty list is the same as none. */
export function readPortRules(reader: Reader, action: Rule['action']): readonly PortRule[] {
  const rules: PortRule[] = []
  for (const item of reader.items() ?? []) {
    const fields = item.fields(action === 'allow' ? ALLOW_PORTS : DENY_PORTS)
    if (fields === undefined) continue
    const dns = readDns(fields.get('rules'))
    const entries = fields.get('ports')?.items() ?? []
    if (entries.length === 0 && !fields.has('ports')) item.fault('found no ports, expected some')
    else if (entries.length === 0) fields.get('ports')?.expected('at least one port')
    const ports = entries.flatMap((entry) => readPort(entry, dns !== undefined))
    rules.push({ ports, dns })
  }
  return rules
}

/** The names of `rules.dns`; undefined without DNS rules. An empty list is a fault: it could mean all or none. */
function readDns(reader: Reader | undefined): readonly Pattern[] | undefined {
  const dns = reader?.fields(L7_RULES)?.get('dns')
  if (dns === undefined) return undefined
  const items = dns.items() ?? []
  if (items.length === 0 && Array.isArray(dns.value)) {
    dns.expected('at least one matchName or matchPattern')
  }
  return items.flatMap((item) => readNames(item) ?? [])
}

function readPort(reader: Reader, withDns: boolean): readonly PortRange[] {
  const fields = reader.fields(PORT)
  if (fields === undefined) return []
  const portReader = fields.get('port')
  const protocols = readProtocol(fields.get('protocol'))
  const endReader = fields.get('endPort')
  const end = endReader === undefined ? 0 : readEndPort(endReader)
  if (portReader === undefined) {
    reader.fault(`found no port, expected ${PORT_FORM}`)
    return []
  }
  const port = readPortNumber(portReader)
  if (port === undefined || end === undefined || protocols === undefined) return []
  if (endReader !== undefined && end !== 0 && port === 0) {
    endReader.fault('found an endPort beside port 0, which is every port already')
  } else if (endReader !== undefined && end !== 0 && end < port) {
    endReader.expected(`${port} or more, as port is`)
  }
  if (withDns && port === 0) portReader.expected('a port from 1 to 65535 beside rules.dns')
  if (withDns && end > port) endReader?.fault('can not stand beside rules.dns: write single ports')
  const [low, high] = port === 0 ? [0, 65_535] : [port, Math.max(port, end)]
  return protocols.map((protocol) => ({ protocol, low, high }))
}

/** A number, or text of digits as Kubernetes wants it. Text with a letter is a named port. */
function readPortNumber(reader: Reader): number | undefined {
  const { value } = reader
  if (typeof value === 'number') return isPort(value) ? value : reader.expected(PORT_FORM)
  const text = reader.text(PORT_FORM)
  if (text === undefined) return undefined
  if (/^(0|[1-9][0-9]{0,4})$/.test(text) && isPort(Number(text))) return Number(text)
  const named = /^[A-Za-z0-9-]{1,15}$/.test(text) && /[A-Za-z]/.test(text)
  return named
    ? reader.fault(`named ports are not built yet: found ${JSON.stringify(text)}`)
    : reader.expected(PORT_FORM)
}

/** 0 is the same as no endPort. */
function readEndPort(reader: Reader): number | undefined {
  const { value } = reader
  return typeof value === 'number' && isPort(value)
    ? value
    : reader.expected(`${PORT_FORM}, as a number`)
}

function isPort(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 65_535
}

function readProtocol(reader: Reader | undefined): readonly number[] | undefined {
  if (reader === undefined) return PORT_PROTOCOLS
  const text = reader.text('TCP, UDP, SCTP or ANY')?.toUpperCase()
  if (text === undefined) return undefined
  const known = PROTOCOLS.get(text)
  if (known !== undefined) return known
  return OTHER_PROTOCOLS.test(text)
    ? reader.fault(`${text} is not supported`)
    : reader.expected('TCP, UDP, SCTP or ANY')
}
