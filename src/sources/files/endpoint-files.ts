// Reads endpoints from files, and adds addresses to an endpoint that has an interface but no addresses. Such an endpoint gets the addresses
// that its interface has when the file is read, and the loopback addresses. This is for a sidecar in namegate's own network namespace. A
// pod keeps its addresses, so one look is enough. An interface without an address is a fault, so that no endpoint is without addresses.

import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { PlacedPath } from '../../config/config.ts'
import { findPolicyFiles } from '../../config/files.ts'
import { InvalidInputError, type Fault } from '../../core/errors.ts'
import { formatPrefix, parseAddress, parsePrefix, type Prefix } from '../../core/ip.ts'
import { parseEndpoints, type EndpointRecord, type EndpointsFile } from '../../endpoints/file.ts'
import type { Parsed } from './source-files.ts'

/** Completes the records of a file, for example with the addresses of their interfaces. */
type Completion = (file: EndpointsFile) => Parsed<EndpointRecord>

const asWritten: Completion = ({ endpoints, faults }) => ({ items: endpoints, faults })

/** Reads the configured files, for commands that run before or beside a daemon. Throws InvalidInputError with all faults. */
export function readEndpointFiles(
  paths: readonly PlacedPath[],
  complete: Completion = asWritten,
): readonly EndpointRecord[] {
  const found = paths.map(({ path }) => findPolicyFiles(path))
  const read = found
    .flatMap(({ files }) => files)
    .map((file) => complete(parseEndpoints(readFileSync(file, 'utf8'), file)))
  const faults = [...found, ...read].flatMap((each) => each.faults)
  if (faults.length > 0) throw new InvalidInputError(faults)
  return read.flatMap(({ items }) => items)
}

/** Returns the addresses of an interface as text, without prefix length. */
export type AddressesOf = (name: string) => readonly string[]

const LOOPBACK = ['127.0.0.0/8', '::1/128'] as const
/** Link-local addresses are left out, because every interface can have the same ones. */
const LINK_LOCAL = /^fe[89ab]/i

/** Returns the endpoints of a file with all their addresses. Returns no endpoints if there is any fault. */
export function withInterfaceAddresses(
  { endpoints, faults }: EndpointsFile,
  addressesOf: AddressesOf = ownAddressesOf,
): Parsed<EndpointRecord> {
  const found: Fault[] = [...faults]
  const items = endpoints.map((record) => {
    const { name, hook, addresses, position } = record
    if (addresses.length > 0 || hook.kind !== 'interface') return record
    const own = prefixesOf(addressesOf(hook.name))
    if (own.length === 0) {
      const message = `${name}: found no addresses, and interface ${hook.name} has none to take, expected some`
      found.push({ position, message })
    }
    const all = [...own, ...LOOPBACK.flatMap(toPrefix)]
    return { ...record, addresses: all, addressPositions: all.map(() => position) }
  })
  return { items: found.length > 0 ? [] : items, faults: found }
}

/** Parses and sorts addresses. Sorted addresses let an endpoint stay the same over a restart. */
function prefixesOf(texts: readonly string[]): readonly Prefix[] {
  const byText = new Map<string, Prefix>()
  for (const text of texts) {
    const address = LINK_LOCAL.test(text) ? undefined : parseAddress(text)
    if (address !== undefined) byText.set(formatPrefix(address), address)
  }
  return [...byText].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, prefix]) => prefix)
}

function toPrefix(text: string): readonly Prefix[] {
  const result = parsePrefix(text)
  return result.kind === 'ok' ? [result.prefix] : []
}

function ownAddressesOf(name: string): readonly string[] {
  return (networkInterfaces()[name] ?? []).map(({ address }) => address)
}
