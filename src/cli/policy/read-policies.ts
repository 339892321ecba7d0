// Policy files, endpoints and resources that a command works on without a daemon. Read as the daemon reads them; with a
// fault in any file there are none.

import type { PoliciesConfig } from '../../config/config.ts'
import { findPolicyFiles, readTextFile } from '../../config/files.ts'
import { formatFault, InvalidInputError, type Fault } from '../../core/errors.ts'
import { overlapFaults, parseEndpoints, type EndpointRecord } from '../../endpoints/file.ts'
import { parseResources, repeatedNames, type ResourceRecord } from '../../endpoints/resources.ts'
import type { Policy } from '../../policy/rule.ts'
import { parsePolicyFile, readingOf, repeatedPolicies } from '../../sources/files/policy-files.ts'
import { parseListedResources } from './listed-resources.ts'

export interface Read<Item> {
  readonly items: readonly Item[]
  readonly faults: readonly Fault[]
}

/** Every policy of files and folders, read as the config wants; `notes` takes what is read otherwise than it looks. */
export function readPolicies(
  paths: readonly string[],
  config: PoliciesConfig,
  notes?: Fault[],
): Read<Policy> {
  const options = { ...readingOf(config), ...(notes && { notes }) }
  const parse = (text: string, file: string): Read<Policy> => parsePolicyFile(text, file, options)
  const found = paths.map(findPolicyFiles)
  const files = new Set(found.flatMap((each) => each.files))
  const read = readAll(files, parse, repeatedPolicies)
  return { items: read.items, faults: [...found.flatMap((each) => each.faults), ...read.faults] }
}

export function readEndpoints(files: readonly string[]): Read<EndpointRecord> {
  const parse = (text: string, file: string): Read<EndpointRecord> => {
    const { endpoints: items, faults } = parseEndpoints(text, file)
    return { items, faults }
  }
  return readAll(files, parse, overlapFaults)
}

export function readResources(files: readonly string[]): Read<ResourceRecord> {
  const parse = (text: string, file: string): Read<ResourceRecord> => {
    const listed = parseListedResources(text, file)
    const { resources: items, faults } = listed ?? parseResources(text, file)
    return { items, faults }
  }
  return readAll(files, parse, repeatedNames)
}

/** The items; throws InvalidInputError with the faults when there are any. */
export function goodItems<Item>({ items, faults }: Read<Item>): readonly Item[] {
  if (faults.length > 0) throw new InvalidInputError(uniqueFaults(faults))
  return items
}

function readAll<Item>(
  files: Iterable<string>,
  parse: (text: string, file: string) => Read<Item>,
  together: (items: readonly Item[]) => readonly Fault[],
): Read<Item> {
  const items: Item[] = []
  const faults: Fault[] = []
  for (const file of files) {
    const text = readTextFile(file)
    const read = text.kind === 'bad' ? { items: [], faults: [text.fault] } : parse(text.text, file)
    items.push(...read.items)
    faults.push(...read.faults)
  }
  return { items, faults: [...faults, ...together(items)] }
}

/** A fault that one file and all together found is told once. */
function uniqueFaults(faults: readonly Fault[]): readonly Fault[] {
  return [...new Map(faults.map((fault) => [formatFault(fault), fault])).values()]
}
