// This file reads files of policies, endpoints and resources for commands without a daemon, in the same way as the daemon. A command does
// not work with a part of the files: a fault in any file ends the command.

import type { PoliciesConfig } from '../../config/config.ts'
import { findPolicyFiles, readTextFile } from '../../config/files.ts'
import { formatFault, InvalidInputError, type Fault } from '../../core/errors.ts'
import { overlapFaults, parseEndpoints, type EndpointRecord } from '../../endpoints/file.ts'
import { parseResources, repeatedNames, type ResourceRecord } from '../../endpoints/resources.ts'
import type { Policy } from '../../policy/rule.ts'
import { parsePolicyFile, readingOf, repeatedPolicies } from '../../sources/files/policy-files.ts'
import { parseListedResources } from './listed-resources.ts'

/** What was read from files. If there are faults, use goodItems, which throws them. */
export interface Read<Item> {
  readonly items: readonly Item[]
  readonly faults: readonly Fault[]
}

/** Reads every policy of files and folders, as the config says. Adds a note to `notes` for each text that is easily misunderstood. */
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

/** Reads endpoints files. If two endpoints have the same name, address or hook, this is a fault. */
export function readEndpoints(files: readonly string[]): Read<EndpointRecord> {
  const parse = (text: string, file: string): Read<EndpointRecord> => {
    const { endpoints: items, faults } = parseEndpoints(text, file)
    return { items, faults }
  }
  return readAll(files, parse, overlapFaults)
}

/** Reads resources files, and files with the output of `get resources -o json`. A name that is in two files is a fault. */
export function readResources(files: readonly string[]): Read<ResourceRecord> {
  const parse = (text: string, file: string): Read<ResourceRecord> => {
    const listed = parseListedResources(text, file)
    const { resources: items, faults } = listed ?? parseResources(text, file)
    return { items, faults }
  }
  return readAll(files, parse, repeatedNames)
}

/** Returns the items if there are no faults. Otherwise throws InvalidInputError with the faults. */
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

/** Removes repeated faults, because the check of one file and the check of all files together can find the same fault. */
export function uniqueFaults(faults: readonly Fault[]): readonly Fault[] {
  return [...new Map(faults.map((fault) => [formatFault(fault), fault])).values()]
}
