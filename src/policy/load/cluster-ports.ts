// `readProtocols` reads `protocols` of a rule of a ClusterNetworkPolicy: ports of TCP, UDP or SCTP by number or range, and ports by name.

import { PORT_PROTOCOLS, SCTP, TCP, UDP, type PortRange } from '../../core/protocol.ts'
import type { FieldTable, Reader } from '../../documents/source-document.ts'
import { isPortName } from '../compile/named-ports.ts'
import type { PortRule, RuleAction } from '../rule.ts'
import { onlyField } from './only-field.ts'
import { portRule, type ReadPort } from './ports.ts'

export const PROTOCOL: FieldTable = new Map([
  ['tcp', true],
  ['udp', true],
  ['sctp', true],
  ['destinationNamedPort', true],
])
export const PROTOCOL_PORT: FieldTable = new Map([['destinationPort', true]])
export const DESTINATION_PORT: FieldTable = new Map([
  ['number', true],
  ['range', true],
])
export const PORT_RANGE: FieldTable = new Map([
  ['start', true],
  ['end', true],
])

const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['tcp', TCP],
  ['udp', UDP],
  ['sctp', SCTP],
])
const PORT_FORM = 'a port from 1 to 65535, as a number'

/** What `protocols` depend on in their rule. */
export interface ProtocolsOf {
  /** Undefined after a fault. */
  readonly action: RuleAction | undefined
  /** True if all peers can have named ports. */
  readonly hasPortNames: boolean
}

/** Reads the items of `protocols`. */
export function readProtocols(items: readonly Reader[], of: ProtocolsOf): PortRule {
  return portRule(
    items.map((item) => readProtocol(item, of)),
    undefined,
  )
}

function readProtocol(reader: Reader, of: ProtocolsOf): ReadPort {
  const only = onlyField(reader, PROTOCOL)
  if (only === undefined) return []
  const protocol = NUMBERS.get(only.key)
  if (protocol === undefined) return readNamedPort(only.field, of) ?? []
  const port = onlyField(only.field, PROTOCOL_PORT)
  const form = port === undefined ? undefined : onlyField(port.field, DESTINATION_PORT)
  if (form === undefined) return []
  const range = form.key === 'range' ? readRange(form.field) : readNumber(form.field)
  return range === undefined ? [] : [{ protocol, ...range }]
}

/**
 * Reads a port by name. Several endpoints can have several numbers under one name: then Accept opens none of them and Deny denies all of
 * them. For Pass neither is safe, because a tier behind it can allow or deny.
 */
function readNamedPort(
  reader: Reader,
  { action, hasPortNames }: ProtocolsOf,
): ReadPort | undefined {
  const name = reader.text('the name of a port')
  if (name === undefined) return undefined
  if (!isPortName(name)) return reader.expected('the name of a port')
  if (!hasPortNames) {
    return reader.fault('can not stand beside networks or domainNames, which have no named ports')
  }
  if (action === 'pass') return reader.fault('is not supported in Pass rules: write port numbers')
  return { name: name.toLowerCase(), protocols: PORT_PROTOCOLS }
}

type Ports = Pick<PortRange, 'low' | 'high'>

function readNumber(reader: Reader): Ports | undefined {
  const port = readPort(reader)
  return port === undefined ? undefined : { low: port, high: port }
}

function readRange(reader: Reader): Ports | undefined {
  const fields = reader.fields(PORT_RANGE)
  const [start, end] = [fields?.get('start'), fields?.get('end')]
  if (fields === undefined) return undefined
  if (start === undefined) return reader.fault(`found no start, expected ${PORT_FORM}`)
  if (end === undefined) return reader.fault(`found no end, expected ${PORT_FORM}`)
  const [low, high] = [readPort(start), readPort(end)]
  if (low === undefined || high === undefined) return undefined
  return low < high ? { low, high } : end.expected(`more than ${low}, as start is`)
}

function readPort(reader: Reader): number | undefined {
  const { value } = reader
  const isPort = typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536
  return isPort ? value : reader.expected(PORT_FORM)
}
