// `parseEndpoints` reads an endpoints file: a list of workloads. It turns text into plain records with their positions, and does not check
// which interfaces or cgroups exist. If a file has a fault, none of its endpoints is used. `overlapFaults` finds names, addresses and hooks
// that two endpoints share, in one file or in several.

import { formatPlace, type Fault, type Position } from '../core/errors.ts'
import { containsPrefix, formatPrefix, type Prefix } from '../core/ip.ts'
import { objectDocument } from '../documents/object-source.ts'
import { Reader, type FieldTable } from '../documents/source-document.ts'
import { parseDocument } from '../documents/quick-documents.ts'
import type { PortName } from '../policy/compile/named-ports.ts'
import {
  readAddresses,
  readLabels,
  readList,
  readName,
  readPortNames,
  withoutItemsAfterEmpty,
} from './read.ts'
import type { EndpointHook } from './registry.ts'

/** An endpoint as a file describes it. */
export interface EndpointRecord {
  readonly name: string
  /**
   * The addresses and prefixes of the endpoint. An address is a /32 or /128. Empty for a cgroup, whose processes share the host's
   * addresses. Can be empty for an interface of side `egress`; then its source fills them in (sources/files/endpoint-files.ts).
   */
  readonly addresses: readonly Prefix[]
  /** The position of each item of `addresses`. */
  readonly addressPositions: readonly Position[]
  /** `source:key=value`, sorted. */
  readonly labels: readonly string[]
  /** The names of ports that policies can use; absent if there are none. */
  readonly ports?: readonly PortName[]
  /**
   * Where the kernel sees the endpoint's packets. Side `ingress`: the interface is the host side of the endpoint's veth. Side `egress`: the
   * interface is inside the workload's own namespace. `none`: the endpoint can ask and learn, but its packets are not enforced.
   */
  readonly hook: EndpointHook
  readonly audit: boolean
  /** The identity that a cluster gave the workload; absent for a workload of a file. A later workload of the same name has another one. */
  readonly uid?: string
  readonly position: Position
}

/** The result of reading endpoints. If there are faults, the list of endpoints is empty. */
export interface EndpointsFile {
  readonly endpoints: readonly EndpointRecord[]
  readonly faults: readonly Fault[]
}

const ENDPOINT: FieldTable = new Map([
  ['name', true],
  ['addresses', true],
  ['labels', true],
  ['ports', true],
  ['interface', true],
  ['hook', true],
  ['cgroup', true],
  ['audit', true],
])

/** Reads one file. A file without the list has a fault, so that an emptied file removes no endpoint. Never throws, whatever the text. */
export function parseEndpoints(text: string, file: string): EndpointsFile {
  const { document, faults: syntax } = parseDocument(text, file)
  const faults = [...withoutItemsAfterEmpty(text, file, syntax)]
  const endpoints: EndpointRecord[] = []
  for (const item of readList(document, 'endpoints', faults)) {
    const endpoint = readEndpoint(item)
    if (endpoint !== undefined) endpoints.push(endpoint)
  }
  faults.push(...overlapFaults(endpoints))
  faults.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column)
  return { endpoints: faults.length > 0 ? [] : endpoints, faults }
}

/** Reads one endpoint from an object with the same fields. Faults show `name` in place of the file. */
export function parseEndpointObject(value: unknown, name: string): EndpointsFile {
  const { document, faults: unread } = objectDocument(value, name)
  const faults = [...unread]
  const endpoint = faults.length > 0 ? undefined : readEndpoint(new Reader(document, { faults }))
  return { endpoints: endpoint === undefined || faults.length > 0 ? [] : [endpoint], faults }
}

function readEndpoint(reader: Reader): EndpointRecord | undefined {
  const fields = reader.fields(ENDPOINT)
  if (fields === undefined) return undefined
  const nameReader = fields.get('name')
  const name =
    nameReader === undefined ? reader.fault('found no name, expected one') : readName(nameReader)
  const hook = readHook(fields)
  const isInside = hook.kind === 'interface' && hook.side === 'egress'
  const mayBeEmpty = fields.has('cgroup') || (isInside && !fields.has('addresses'))
  const { addresses, addressPositions } = readAddresses(reader, fields, mayBeEmpty)
  const labels = readLabels(fields.get('labels'), 'endpoint')
  const audit = fields.get('audit')?.flag() ?? false
  if (name === undefined) return undefined
  const { position } = reader
  const ports = readPortNames(fields.get('ports'))
  const record = { name, addresses, addressPositions, labels, hook, audit, position }
  return ports.length === 0 ? record : { ...record, ports }
}

function readHook(fields: ReadonlyMap<string, Reader>): EndpointHook {
  const [interfaceReader, cgroupReader] = [fields.get('interface'), fields.get('cgroup')]
  const hookReader = fields.get('hook')
  if (interfaceReader !== undefined && cgroupReader !== undefined) {
    cgroupReader.fault('can not stand beside interface: an endpoint has one of them', 'key')
  }
  if (hookReader !== undefined && interfaceReader === undefined) {
    hookReader.fault('can not stand without interface', 'key')
  }
  const side = hookReader === undefined ? 'ingress' : readSide(hookReader)
  if (interfaceReader !== undefined) {
    const what = 'the name of an interface, 1 to 15 characters'
    const name = interfaceReader.text(what)
    const isName = name !== undefined && /^[^\s/\p{C}]{1,15}$/u.test(name) && !/^\.+$/.test(name)
    if (isName) return { kind: 'interface', name, side: side ?? 'ingress' }
    if (name !== undefined) interfaceReader.expected(what)
  } else if (cgroupReader !== undefined) {
    const path = readCgroup(cgroupReader)
    if (path !== undefined) return { kind: 'cgroup', path }
  }
  return { kind: 'none' }
}

function readSide(reader: Reader): 'ingress' | 'egress' | undefined {
  const { value } = reader
  return value === 'ingress' || value === 'egress' ? value : reader.expected('ingress or egress')
}

/** The eBPF program looks at the root and at these levels. */
const CGROUP_LEVELS_MAX = 31

/** Reads a path inside the cgroup2 mount. Removes slashes at both ends, and refuses steps upwards. */
function readCgroup(reader: Reader): string | undefined {
  const what = 'a path inside the cgroup2 mount, such as shop.slice'
  const text = reader.text(what)
  if (text === undefined) return undefined
  const path = text.replace(/^\/+|\/+$/g, '')
  const steps = path.split('/')
  const bad = steps.some((step) => step === '' || step === '.' || step === '..')
  if (bad || /\p{C}/u.test(path)) return reader.expected(what)
  if (/["*]/.test(path)) {
    return reader.expected('a path without " and *, because a rule of nftables names the cgroup')
  }
  if (steps.length > CGROUP_LEVELS_MAX) {
    reader.fault(`found ${steps.length} levels, expected at most ${CGROUP_LEVELS_MAX}`)
    return undefined
  }
  return path
}

/** Finds names, hooks and addresses that two endpoints share. The fault is at the later endpoint. */
export function overlapFaults(endpoints: readonly EndpointRecord[]): readonly Fault[] {
  const faults: Fault[] = []
  const names = new Map<string, EndpointRecord>()
  for (const endpoint of endpoints) {
    const first = names.get(endpoint.name)
    if (first === undefined) names.set(endpoint.name, endpoint)
    else
      faults.push(fault(endpoint.position, `found the name ${endpoint.name} again`, first.position))
  }
  faults.push(...sharedHooks(endpoints))
  const all = endpoints.flatMap((endpoint, order) =>
    endpoint.addresses.map((prefix, i) => {
      const position = endpoint.addressPositions[i] ?? endpoint.position
      return { prefix, endpoint, order, position }
    }),
  )
  const outer: (typeof all)[number][] = []
  for (const each of all.sort((a, b) => comparePrefixes(a.prefix, b.prefix) || a.order - b.order)) {
    while (outer.length > 0 && !contains(outer.at(-1), each.prefix)) outer.pop()
    const [around] = outer.slice(-1)
    outer.push(each)
    if (around === undefined || around.endpoint === each.endpoint) continue
    const [first, second] = around.order < each.order ? [around, each] : [each, around]
    const owner = `${first.endpoint.name}'s ${formatPrefix(first.prefix)}`
    const message = `${second.endpoint.name}: found ${formatPrefix(second.prefix)}, which overlaps ${owner}`
    faults.push(fault(second.position, message, first.position))
  }
  return faults
}

/** Finds interfaces and cgroups that two endpoints share, because a hook can have one endpoint only. */
function sharedHooks(endpoints: readonly EndpointRecord[]): readonly Fault[] {
  const first = new Map<string, EndpointRecord>()
  return endpoints.flatMap((endpoint) => {
    const { hook } = endpoint
    if (hook.kind === 'none') return []
    const text = hook.kind === 'interface' ? `interface ${hook.name}` : `cgroup ${hook.path}`
    const before = first.get(text)
    if (before === undefined) {
      first.set(text, endpoint)
      return []
    }
    const message = `${endpoint.name}: found ${text}, which is ${before.name}'s`
    return [fault(endpoint.position, message, before.position)]
  })
}

function contains(outer: { readonly prefix: Prefix } | undefined, inner: Prefix): boolean {
  return outer !== undefined && containsPrefix(outer.prefix, inner)
}

/** Compares by family, then address, then length. So after sorting, a prefix is right before the prefixes inside it. */
function comparePrefixes(a: Prefix, b: Prefix): number {
  if (a.family !== b.family) return a.family - b.family
  for (const [i, octet] of a.octets.entries()) {
    const difference = octet - (b.octets[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

function fault(position: Position, message: string, first: Position): Fault {
  return { position, message: `${message}, first at ${formatPlace(first)}` }
}
