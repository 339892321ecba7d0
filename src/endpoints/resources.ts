// `parseResources` reads a resources file. A resource gives labels to addresses and prefixes that no endpoint has, for example those of a
// database. Policy selects resources by `toEntities: cluster` and by labels. Addresses inside the prefixes of a resource inherit its
// labels. If a file has a fault, none of its resources is used. `parseResourceObject` reads one resource from an object. The name stands
// outside of this object, and the object can have a time to live (`ttl`).

import { formatPlace, type Fault, type Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import { objectDocument } from '../documents/object-source.ts'
import { DURATION_FORM, parseDuration } from '../core/quantity.ts'
import { Reader, type FieldTable } from '../documents/source-document.ts'
import { parseYamlDocument } from '../documents/yaml-source.ts'
import type { PortName } from '../policy/compile/named-ports.ts'
import {
  readAddresses,
  readLabels,
  readList,
  readName,
  readPortNames,
  withoutItemsAfterEmpty,
} from './read.ts'

/** A resource as a file or the API describes it. */
export interface ResourceRecord {
  readonly name: string
  readonly addresses: readonly Prefix[]
  /** `source:key=value`, sorted. */
  readonly labels: readonly string[]
  /** The names of ports that policies can use; absent if there are none. */
  readonly ports?: readonly PortName[]
  readonly position: Position
}

/** The result of reading resources. If there are faults, the list of resources is empty. */
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

/** The fields of a resource whose name stands outside of the object. */
const BODY: FieldTable = new Map([
  ['addresses', true],
  ['labels', true],
  ['ports', true],
  ['ttl', true],
])

/** The longest time to live: ten years, in milliseconds. */
export const RESOURCE_TTL_MAX = 3_650 * 86_400_000

/** The result of reading one resource. */
export interface ResourceBody {
  /** Undefined if there are faults. */
  readonly resource: ResourceRecord | undefined
  /** How long the resource exists, in milliseconds from now; undefined: until it is removed. */
  readonly ttl: number | undefined
  readonly faults: readonly Fault[]
}

/** Reads one resource from an object. Faults show `from` in place of the file. */
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

/** Reads one file. A file without the list has a fault, so that an emptied file removes no resource. Never throws, whatever the text. */
export function parseResources(text: string, file: string): ResourcesFile {
  const { document, faults: syntax } = parseYamlDocument(text, file)
  const faults = [...withoutItemsAfterEmpty(text, file, syntax)]
  const resources: ResourceRecord[] = []
  for (const item of readList(document, 'resources', faults)) {
    const resource = readResource(item)
    if (resource !== undefined) resources.push(resource)
  }
  faults.push(...repeatedNames(resources))
  faults.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column)
  return { resources: faults.length > 0 ? [] : resources, faults }
}

/** Reads the `labels` of a resource. Several resources can get the same list object. */
export type LabelReading = (reader: Reader | undefined) => readonly string[]

const ownLabels: LabelReading = (reader) => readLabels(reader, 'resource')

/** Reads one item of the list. */
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

/** Finds names that occur twice, in one file or in several. The fault is at the later resource. */
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
