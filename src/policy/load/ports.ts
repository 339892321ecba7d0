// `readPortRules` reads `toPorts`: ports with protocols, and DNS rules for these ports. As in Cilium, port 0 means every port of the
// protocol, and no protocol or `ANY` means TCP, UDP and SCTP. An entry of `ports` never covers ICMP, which has no ports.

import { PORT_PROTOCOLS, SCTP, TCP, UDP, type PortRange } from '../../core/protocol.ts'
import {
  hasUnsupported,
  notSupported,
  type FieldTable,
  type Reader,
  type Unsupported,
} from '../../documents/source-document.ts'
import { readNames } from './names.ts'
import { isPortName } from '../compile/named-ports.ts'
import { parseMatchPattern, type Pattern } from '../match/pattern.ts'
import type { NamedPort, PortRule, Rule } from '../rule.ts'

const BY_NAME = notSupported('namegate decides by name, address and port')

const PORT_RULE: readonly (readonly [string, true | string | Unsupported])[] = [
  ['ports', true],
  ['rules', true],
  ['terminatingTLS', BY_NAME],
  ['originatingTLS', BY_NAME],
  ['serverNames', notSupported('use toFQDNs')],
  ['listener', BY_NAME],
]
export const ALLOW_PORTS: FieldTable = new Map(PORT_RULE)
export const DENY_PORTS: FieldTable = new Map([
  ...PORT_RULE,
  ['rules', 'is not supported in egressDeny: deny the port itself'],
])

export const L7_RULES: FieldTable = new Map<string, true | Unsupported>([
  ['dns', true],
  ['http', BY_NAME],
  ['kafka', BY_NAME],
  ['l7', BY_NAME],
  ['l7proto', BY_NAME],
])

export const PORT: FieldTable = new Map([
  ['port', true],
  ['endPort', true],
  ['protocol', true],
])

export const PROTOCOLS: ReadonlyMap<string, readonly number[]> = new Map([
  ['', PORT_PROTOCOLS],
  ['ANY', PORT_PROTOCOLS],
  ['TCP', [TCP]],
  ['UDP', [UDP]],
  ['SCTP', [SCTP]],
])
/** Protocols of Cilium that namegate does not support in `toPorts`. */
const OTHER_PROTOCOLS = /^(ICMP|ICMPV6|VRRP|IGMP|GRE|IPIP|IPV6|ESP|AH)$/

const PORT_FORM = 'a port from 0 to 65535, or the name of one'

/** The entries of `toPorts`. */
export interface PortRules {
  readonly rules: readonly PortRule[]
  /** True if one entry has no ports (`toPorts: [{}]`), which means every port and protocol. `rules` does not contain this entry. */
  readonly everyPort: boolean
}

/**
 * Reads all entries. An empty list means the same as no `toPorts`. An entry with an unsupported field stays in the result, but without
 * ports, so that it opens nothing. If the entry were left out, a rule without other entries would mean every port.
 */
export function readPortRules(reader: Reader, action: Rule['action']): PortRules {
  const rules: PortRule[] = []
  let everyPort = false
  for (const item of reader.items() ?? []) {
    const table = action === 'allow' ? ALLOW_PORTS : DENY_PORTS
    const fields = (action === 'allow' ? item : item.strict()).fields(table)
    if (fields === undefined) continue
    const l7 = fields.get('rules')?.fields(L7_RULES)
    const dns = readDns(l7?.get('dns'))
    const entries = fields.get('ports')?.items() ?? []
    if (entries.length === 0 && isListOrNothing(fields.get('ports'))) {
      if (fields.has('rules')) item.fault('found no ports beside rules, expected some')
      if (hasUnsupported(fields, table)) {
        rules.push(portRule([], dns))
        continue
      }
      item.note('an entry without ports is every port and protocol')
      everyPort = true
      continue
    }
    const read = entries.map((entry) => readPort(entry, dns !== undefined))
    const isDone = !hasUnsupported(fields, table) && !hasUnsupported(l7 ?? NO_FIELDS, L7_RULES)
    rules.push(portRule(isDone ? read : [], dns))
  }
  return { rules, everyPort }
}

/** Returns true for an absent field and for a list. Anything else in the field has been reported as a fault before. */
function isListOrNothing(field: Reader | undefined): boolean {
  return field === undefined || Array.isArray(field.value)
}

const STAR = parseMatchPattern('*')
const EVERY_NAME: readonly Pattern[] = STAR.kind === 'ok' ? [STAR.pattern] : []
const NO_FIELDS: ReadonlyMap<string, Reader> = new Map()

/** An entry of `ports`: its port ranges, one for each protocol, or a port by name. Empty after a fault. */
export type ReadPort = readonly PortRange[] | NamedPort

/** Makes a `toPorts` entry of these ports. `dns`: the names that can be asked, or undefined without DNS rules. */
export function portRule(
  ports: readonly ReadPort[],
  dns: readonly Pattern[] | undefined,
): PortRule {
  const ranges = ports.flatMap((each) => (isNamed(each) ? [] : each))
  const named = ports.filter(isNamed)
  return named.length === 0 ? { ports: ranges, dns } : { ports: ranges, named, dns }
}

function isNamed(port: ReadPort): port is NamedPort {
  return 'name' in port
}

/** Returns the patterns of `rules.dns`, or undefined without `rules.dns`. An empty list means every name, as in Cilium. */
function readDns(dns: Reader | undefined): readonly Pattern[] | undefined {
  if (dns === undefined) return undefined
  const items = dns.items() ?? []
  if (items.length === 0 && Array.isArray(dns.value)) {
    dns.note('an empty list is every name', 'key')
    return EVERY_NAME
  }
  return items.flatMap((item) => readNames(item) ?? [])
}

function readPort(reader: Reader, withDns: boolean): ReadPort {
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
  if (typeof port === 'string') {
    if (end !== 0) endReader?.fault('can not stand beside a named port')
    return { name: port, protocols }
  }
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

/** Reads a port: a number, digits as text, or a name. Returns a name in lower case, as Cilium does, and undefined after a fault. */
export function readPortNumber(reader: Reader): number | string | undefined {
  const { value } = reader
  if (typeof value === 'number') return isPort(value) ? value : reader.expected(PORT_FORM)
  const text = reader.text(PORT_FORM)
  if (text === undefined) return undefined
  if (/^(0|[1-9][0-9]{0,4})$/.test(text) && isPort(Number(text))) return Number(text)
  return isPortName(text) ? text.toLowerCase() : reader.expected(PORT_FORM)
}

/** Reads an endPort, where 0 means the same as no endPort. Returns undefined after a fault. */
export function readEndPort(reader: Reader): number | undefined {
  const { value } = reader
  return typeof value === 'number' && isPort(value)
    ? value
    : reader.expected('a port from 0 to 65535, as a number')
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
    ? reader.unsupported(`${text} is not supported: a rule without toPorts is about it as well`)
    : reader.expected('TCP, UDP, SCTP or ANY')
}
