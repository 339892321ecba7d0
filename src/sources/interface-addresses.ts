// Addresses of endpoints that stand inside namegate's own network namespace and name none, as a sidecar's: those
// that their interface has when the endpoint is read, and loopback, from where its processes ask as well. A pod keeps
// its addresses, so one look is enough; an interface that has none yet is a fault, never an endpoint without any.

import { networkInterfaces } from 'node:os'
import type { Fault } from '../core/errors.ts'
import { formatPrefix, parseAddress, parsePrefix, type Prefix } from '../core/ip.ts'
import type { EndpointRecord, EndpointsFile } from '../endpoints/file.ts'
import type { Parsed } from './files/source-files.ts'

/** Addresses of an interface as text, without length. */
export type AddressesOf = (name: string) => readonly string[]

const LOOPBACK = ['127.0.0.0/8', '::1/128'] as const
/** Every interface may have the same ones. */
const LINK_LOCAL = /^fe[89ab]/i

/** The endpoints with all addresses there are; a missing one is a fault. */
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

/** In a fixed order, so that the same addresses are the same endpoint after a restart. */
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
