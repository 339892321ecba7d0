// The resources file: addresses and prefixes outside that have labels but no client on them, such as a
// database by its address. Labels only; policy selects them by `toEntities: cluster` and, through labels,
// what stands inside their prefixes inherits. A file is taken whole or not at all.

import { formatPlace, type Fault, type Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import { Reader, type FieldTable } from '../core/source-document.ts'
import { parseYamlDocument } from '../config/yaml-source.ts'
import type { PortName } from '../policy/named-ports.ts'
import { readAddresses, readLabels, readName, readPortNames } from './read.ts'

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

const FILE: FieldTable = new Map([['resources', true]])
const RESOURCE: FieldTable = new Map([
  ['name', true],
  ['addresses', true],
  ['labels', true],
  ['ports', true],
])

/** Loads one file. An empty file has no resources. Never throws on any text. */
export function parseResources(text: string, file: string): ResourcesFile {
  const { document, faults: syntax } = parseYamlDocument(text, file)
  const faults = [...syntax]
  const resources: ResourceRecord[] = []
  if (document !== undefined && document.value !== null) {
    const list = new Reader(document, faults).fields(FILE)?.get('resources')
    for (const item of list?.items() ?? []) {
      const resource = readResource(item)
      if (resource !== undefined) resources.push(resource)
    }
  }
  faults.push(...repeatedNames(resources))
  faults.sort(({ position: a }, { position: b }) => a.line - b.line || a.column - b.column)
  return { resources: faults.length > 0 ? [] : resources, faults }
}

function readResource(reader: Reader): ResourceRecord | undefined {
  const fields = reader.fields(RESOURCE)
  if (fields === undefined) return undefined
  const nameReader = fields.get('name')
  const name =
    nameReader === undefined ? reader.fault('found no name, expected one') : readName(nameReader)
  const { addresses } = readAddresses(reader, fields, false)
  const labels = readLabels(fields.get('labels'), 'resource')
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
