// Reads policies and endpoints that the program sets by name. A policy is YAML text, the object of its document, or a list of such objects.
// An endpoint is an object with the fields of the endpoints file. Each is accepted or refused as a whole, like a file. Faults and views
// show its name instead of the name of a file.

import { createHash } from 'node:crypto'
import type { Fault } from '../core/errors.ts'
import { parseEndpointObject, type EndpointRecord } from '../endpoints/file.ts'
import { loadPolicies, loadPolicyObjects, type LoadOptions } from '../policy/load/load.ts'
import type { Policy } from '../policy/rule.ts'
import { withInterfaceAddresses } from './files/endpoint-files.ts'
import type { ProgramItems } from './files/given-items.ts'

/** Items to set by name. `undefined` removes the item of that name. */
export interface SourceEdit {
  /** Policies by any name that the program chooses. */
  readonly policies?: ReadonlyMap<string, unknown>
  /** Endpoints by their own name. */
  readonly endpoints?: ReadonlyMap<string, unknown>
}

type EditOf<Item> = ReadonlyMap<string, ProgramItems<Item> | undefined>

export interface ReadEdit {
  readonly policies: EditOf<Policy>
  readonly endpoints: EditOf<EndpointRecord>
  readonly faults: readonly Fault[]
}

/** Reads everything that an edit sets, and collects all faults. */
export function readEdit({ policies, endpoints }: SourceEdit, reading: LoadOptions = {}): ReadEdit {
  const faults: Fault[] = []
  const readAll = <Item>(
    edits: ReadonlyMap<string, unknown> | undefined,
    what: string,
    read: (value: unknown, file: string) => { items: readonly Item[]; faults: readonly Fault[] },
  ): EditOf<Item> => {
    const all = new Map<string, ProgramItems<Item> | undefined>()
    for (const [name, value] of edits ?? []) {
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

/** A digest of a value that was read without faults and therefore has plain values only. */
function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64')
}
