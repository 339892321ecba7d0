// This file reads the fields that endpoints and resources share: name, addresses, labels and names of ports.

import type { Fault, Position } from '../core/errors.ts'
import { parsePrefix, type Prefix } from '../core/ip.ts'
import { SCTP, TCP, UDP } from '../core/protocol.ts'
import { Reader, type SourceDocument } from '../documents/source-document.ts'
import {
  DEFAULT_EGRESS,
  DEFAULT_EGRESS_KEY,
  isDefaultEgress,
} from '../policy/compile/default-egress.ts'
import {
  DEFAULT_SOURCE,
  formatLabel,
  labelKeyFault,
  labelValueFault,
  NAMESPACE_KEY,
  splitKey,
} from '../policy/match/labels.ts'
import { isPortName, type PortName } from '../policy/compile/named-ports.ts'

export interface ReadAddresses {
  readonly addresses: readonly Prefix[]
  /** The position of each item of `addresses`. */
  readonly addressPositions: readonly Position[]
}

/** Reads the list under the only key of a file. A file without the list has a fault, so that an emptied file removes nothing. */
export function readList(
  document: SourceDocument | undefined,
  key: 'endpoints' | 'resources',
  faults: Fault[],
): readonly Reader[] {
  if (document === undefined) return []
  const reader = new Reader(document, { faults })
  const fields = document.value === null ? undefined : reader.fields(new Map([[key, true]]))
  const list = fields?.get(key)
  if (list === undefined && faults.length === 0) {
    reader.fault(`found no ${key}, expected a list ('${key}: []' for none)`)
  }
  return list?.items() ?? []
}

/** Returns one fault in place of those of the YAML reader if items stand after an empty list, for example after `endpoints: []`. */
export function withoutItemsAfterEmpty(
  text: string,
  file: string,
  syntax: readonly Fault[],
): readonly Fault[] {
  const found = syntax.length === 0 ? null : ITEMS_AFTER_EMPTY.exec(text)
  if (found === null) return syntax
  const [, start = '', key = ''] = found
  const line = text.slice(0, found.index).split('\n').length
  const message = `found items after '${key}: []', expected them after '${key}:': remove the []`
  return [{ position: { file, line, column: start.length + 1 }, message }]
}

/** An empty list with a comment at most, then lines that are empty or comments, then an item. */
const ITEMS_AFTER_EMPTY =
  /^((endpoints|resources):[ \t]*)\[[ \t]*\][ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*-[ \t]/m

/** Reads the `addresses` of an endpoint or resource. No address is a fault, except with `mayBeEmpty`. */
export function readAddresses(
  entry: Reader,
  fields: ReadonlyMap<string, Reader>,
  mayBeEmpty: boolean,
): ReadAddresses {
  const items = fields.get('addresses')?.items() ?? []
  const addresses: Prefix[] = []
  const addressPositions: Position[] = []
  for (const item of items) {
    const prefix = readPrefix(item)
    if (prefix === undefined) continue
    addresses.push(prefix)
    addressPositions.push(item.position)
  }
  if (items.length === 0 && !mayBeEmpty) {
    ;(fields.get('addresses') ?? entry).fault('found no address, expected at least one')
  }
  return { addresses, addressPositions }
}

/** Reads the name of an endpoint or resource. */
export function readName(reader: Reader): string | undefined {
  const what = 'a name of 1 to 253 letters, digits, - _ . / and :, a letter or digit first'
  const text = reader.text(what)
  if (text === undefined) return undefined
  return /^[A-Za-z0-9][\w./:-]{0,252}$/.test(text) ? text : reader.expected(what)
}

function readPrefix(reader: Reader): Prefix | undefined {
  const text = reader.text('an address or prefix')
  if (text === undefined) return undefined
  const result = parsePrefix(text)
  return result.kind === 'ok' ? result.prefix : reader.fault(result.reason)
}

/** Reads labels: a mapping from `key` or `source:key` to text. Without a source, the source is `external`. */
export function readLabels(
  reader: Reader | undefined,
  of: 'endpoint' | 'resource',
): readonly string[] {
  const labels = new Map<string, string>()
  for (const [written, value] of reader?.entries() ?? []) {
    const expected = labelKeyFault(written)
    if (expected !== undefined) {
      value.fault(`found ${JSON.stringify(written)}, expected ${expected}`, 'key')
    }
    const { source, key } = splitKey(written, DEFAULT_SOURCE)
    const fault = refusedLabel(source, key, of)
    if (fault !== undefined) value.fault(fault, 'key')
    const text = value.text()
    const valueFault = text === undefined ? undefined : labelValueFault(text)
    if (valueFault !== undefined) value.expected(valueFault)
    if (text === undefined) continue
    if (key === DEFAULT_EGRESS_KEY && of === 'endpoint') checkDefaultEgress(value, text, labels)
    if (labels.has(`${source}:${key}`)) value.fault(`found the label ${source}:${key} twice`, 'key')
    labels.set(`${source}:${key}`, formatLabel({ source, key, value: text }))
  }
  return [...labels.values()].sort()
}

const PORT_TEXT = /^([0-9]{1,5})(?:\/(TCP|UDP|SCTP))?$/i
const PROTOCOLS: ReadonlyMap<string, number> = new Map([
  ['TCP', TCP],
  ['UDP', UDP],
  ['SCTP', SCTP],
])

/** Reads `ports`: names that policies can use instead of port numbers. `web: 8080` is TCP, `dns: 53/UDP` is UDP. */
export function readPortNames(reader: Reader | undefined): readonly PortName[] {
  const names: PortName[] = []
  for (const [name, value] of reader?.entries() ?? []) {
    if (!isPortName(name)) {
      value.fault(`found ${JSON.stringify(name)}, expected a name of letters, digits and -`, 'key')
    }
    const what = 'a port and its protocol, such as 8080/TCP'
    const text = typeof value.value === 'number' ? String(value.value) : value.text(what)
    const [, digits = '', protocolText = 'TCP'] = PORT_TEXT.exec(text ?? '') ?? []
    const protocol = PROTOCOLS.get(protocolText.toUpperCase())
    const port = Number(digits)
    if (protocol === undefined || port < 1 || port > 65_535) {
      if (text !== undefined) value.expected(what)
    } else {
      names.push({ name: name.toLowerCase(), protocol, port })
    }
  }
  return names
}

/** Returns the fault of a label that only namegate can give, or that would have an unexpected meaning; undefined if there is none. */
function refusedLabel(
  source: string,
  key: string,
  of: 'endpoint' | 'resource',
): string | undefined {
  if (['fqdn', 'cidr', 'reserved', 'any'].includes(source)) {
    return `found the source ${source}, which is not for endpoints, expected k8s, external or one of your own`
  }
  if (key === NAMESPACE_KEY && source !== 'k8s') {
    return `found the source ${source}, expected "k8s:${NAMESPACE_KEY}"`
  }
  return key === DEFAULT_EGRESS_KEY && of === 'resource'
    ? 'means nothing for a resource, which sends nothing'
    : undefined
}

/** Checks the label for the endpoint's own default. It must have a known value and occur once, whatever its source. */
function checkDefaultEgress(
  value: Reader,
  text: string,
  labels: ReadonlyMap<string, string>,
): void {
  if (!isDefaultEgress(text)) value.expected(DEFAULT_EGRESS.join(', '))
  const before = [...labels.keys()].find((label) => label.endsWith(`:${DEFAULT_EGRESS_KEY}`))
  if (before !== undefined) value.fault(`found ${DEFAULT_EGRESS_KEY} twice`, 'key')
}
