// Policies and endpoints that the program itself gives, by name: a policy as YAML text or as the object of its
// document (or a list of them), an endpoint as an object with the fields of the endpoints file. Each is taken
// whole or not at all, as a file is; its name stands where a file's would, so faults and views read alike.

import { createHash } from 'node:crypto'
import type { Fault } from '../core/errors.ts'
import { parseEndpointObject, type EndpointRecord } from '../endpoints/file.ts'
import { loadPolicies, loadPolicyObjects, type LoadOptions } from '../policy/load/load.ts'
import type { Policy } from '../policy/rule.ts'
import { withInterfaceAddresses } from './interface-addresses.ts'
import type { GivenItems } from './files/source-files.ts'

/** What is to change; undefined takes back what was given under that name. */
export interface SourceEdit {
  /** Policies by any name of the giver's. */
  readonly policies?: ReadonlyMap<string, unknown>
  /** Endpoints by their own name. */
  readonly endpoints?: ReadonlyMap<string, unknown>
}

type Given<Item> = ReadonlyMap<string, GivenItems<Item> | undefined>

export interface ReadEdit {
  readonly policies: Given<Policy>
  readonly endpoints: Given<EndpointRecord>
  readonly faults: readonly Fault[]
}

/** Reads everything that an edit gives, with all that is wrong in it. */
export function readGiven(
  { policies, endpoints }: SourceEdit,
  reading: LoadOptions = {},
): ReadEdit {
  const faults: Fault[] = []
  const readAll = <Item>(
    given: ReadonlyMap<string, unknown> | undefined,
    what: string,
    read: (value: unknown, file: string) => { items: readonly Item[]; faults: readonly Fault[] },
  ): Given<Item> => {
    const all = new Map<string, GivenItems<Item> | undefined>()
    for (const [name, value] of given ?? []) {
      const file = `${what} ${name}`
      if (value === undefined) {
        all.set(file, undefined)
        continue
      }
      const { items, faults: found } = read(value, file)
      faults.push(...found)
      if (found.length === 0) all.set(file, { items, digest: digestOf(value) })
    }
    return all
  }
  return {
    policies: readAll(policies, 'policy', (value, file) => readPolicy(value, file, reading)),
    endpoints: readAll(endpoints, 'endpoint', readEndpoint),
    faults,
  }
}

function readPolicy(value: unknown, file: string, reading: LoadOptions) {
  const { policies: items, faults } =
    typeof value === 'string'
      ? loadPolicies(value, file, reading)
      : loadPolicyObjects(value, file, reading)
  return { items, faults }
}

function readEndpoint(value: unknown, file: string) {
  return withInterfaceAddresses(parseEndpointObject(value, file))
}

/** Of a value that was read without faults, so it is plain. */
function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64')
}
