// The resources file: addresses and prefixes outside that have labels but no client on them, such as a
// database by its address. Labels only; policy selects them by `toEntities: cluster` and, through labels,
// what stands inside their prefixes inherits. A file is taken whole or not at all, and so is one resource given as an
// object, which has its name beside it and may have a time to live.

import { formatPlace, type Fault, type Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import { objectDocument } from '../documents/object-source.ts'
import { DURATION_FORM, parseDuration } from '../core/quantity.ts'
import { Reader, type FieldTable } from '../documents/source-document.ts'
import { parseYamlDocument } from '../documents/yaml-source.ts'
import type { PortName } from '../policy/compile/named-ports.ts'
import { readAddresses, readLabels, readList, readName, readPortNames } from './read.ts'

export interface ResourceRecord {
  readonly name: string
  readonly addresses: readonly Prefix[]
  /** `source:key=value`, sorted. */
  readonly labels: readonly string[]
  /** Ports that policies may name; absent when there are none. */
  readonly ports?: readonly PortName[]
  readonly position: Position
}

/** With faults there are no resources. */
export interface ResourcesFile {
  readonly resources: readonly ResourceRecord[]
  readonly faults: readonly Fault[]
}

const RESOURCE: FieldTable = new Map([
  ['name', true],
  ['addresses', true],
  ['labels', true],
  ['ports', true],
])

/** The fields of a resource whose name stands beside it. */
const BODY: FieldTable = new Map([
  ['addresses', true],
  ['labels', true],
  ['ports', true],
  ['ttl', true],
])

/** Longest time to live: ten years, in milliseconds. */
export const RESOURCE_TTL_MAX = 3_650 * 86_400_000

/** With faults there is no resource. */
export interface ResourceBody {
  readonly resource: ResourceRecord | undefined
  /** Milliseconds from when it is given; undefined: until it is taken away. */
  readonly ttl: number | undefined
  readonly faults: readonly Fault[]
}

/** One resource given as an object; `from` stands for the file in faults. */
export function parseResourceObject(name: string, value: unknown, from: string): ResourceBody {
  const { document, faults: unread } = objectDocument(value, from)
  const faults = [...unread]
  const nameDocument = objectDocument({ name }, from).document
  const nameReader = new Reader(nameDocument, { faults }, ['name'], name)
  const reader = new Reader(document, { faults })
  const fields = unread.length > 0 ? undefined : reader.fields(BODY)
  const resource = fields === undefined ? undefined : readRecord(reader, fields, nameReader)
  const ttl = readTtl(fields?.get('ttl'))
  return { resource: faults.length > 0 ? undefined : resource, ttl, faults }
}

function readTtl(reader: Reader | undefined): number | undefined {
  const text = reader?.text(DURATION_FORM)
  if (reader === undefined || text === undefined) return undefined
  const ttl = parseDuration(text)
  if (ttl !== undefined && ttl >= 1000 && ttl <= RESOURCE_TTL_MAX) return ttl
  return reader.expected(ttl === undefined ? DURATION_FORM : 'a duration from 1s to 3650d')
}

/** Loads one file. A file without a list of them is faulty: emptying it takes none away. Never throws on any text. */
export function parseResources(text: string, file: string): ResourcesFile {
  const { document, faults: syntax } = parseYamlDocument(text, file)
  const faults = [...syntax]
  const resources: ResourceRecord[] = []
  for (const item of readList(document, 'resources', faults)) {
    const resource = readResource(item)
    if (resource !== undefined) resources.push(resource)
  }
  faults.push(...repeatedNames(resources))
  faults.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column)
  return { resources: faults.length > 0 ? [] : resources, faults }
}

/** Reads the `labels` of an entry; several may share a list. */
export type LabelReading = (reader: Reader | undefined) => readonly string[]

const ownLabels: LabelReading = (reader) => readLabels(reader, 'resource')

/** One entry of the list. */
export function readResource(
  reader: Reader,
  labelsOf: LabelReading = ownLabels,
): ResourceRecord | undefined {
  const fields = reader.fields(RESOURCE)
  if (fields === undefined) return undefined
  return readRecord(reader, fields, fields.get('name'), labelsOf)
}

function readRecord(
  reader: Reader,
  fields: ReadonlyMap<string, Reader>,
  nameReader: Reader | undefined,
  labelsOf: LabelReading = ownLabels,
): ResourceRecord | undefined {
  const name =
    nameReader === undefined ? reader.fault('found no name, expected one') : readName(nameReader)
  const { addresses } = readAddresses(reader, fields, false)
  const labels = labelsOf(fields.get('labels'))
  const ports = readPortNames(fields.get('ports'))
  if (name === undefined) return undefined
  const record = { name, addresses, labels, position: reader.position }
  return ports.length === 0 ? record : { ...record, ports }
}

/** Names that are there twice, in one file or in several: the later one is the fault. */
export function repeatedNames(resources: readonly ResourceRecord[]): readonly Fault[] {
  const first = new Map<string, Position>()
  return resources.flatMap(({ name, position }) => {
    const before = first.get(name)
    if (before === undefined) {
      first.set(name, position)
      return []
    }
    const message = `found the name ${name} again, first at ${formatPlace(before)}`
    return [{ position, message }]
  })
}
