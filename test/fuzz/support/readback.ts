// Reads the learned addresses from the daemon's tables, and forgets them after the comparison.

import { endpointId } from '../../../src/core/ids.ts'
import { formatAddress } from '../../../src/core/ip.ts'
import { hashOctets } from '../../../src/core/tables/keyed-hash.ts'
import type { Daemon } from '../../../src/daemon/daemon.ts'
import { validateIpCache } from '../../../src/ipcache/validate.ts'
import { wireName } from '../../support/messages.ts'

export interface Learned {
  readonly address: string
  /** Second of the daemon's clock when the TTL ends. */
  readonly liveUntil: number
  /** Names of the endpoints that learned it. */
  readonly endpoints: readonly string[]
  /** Labels of the identity that the datapath confirmed. Undefined without an entry. */
  readonly labels: readonly string[] | undefined
}

/** Every address of a name (labels in lower case). */
export function readLearned(daemon: Daemon, name: readonly string[]): readonly Learned[] {
  const { names, ipcache, labelSets } = daemon.core
  const learned: Learned[] = []
  for (const mapping of mappingsOf(daemon, name)) {
    const row = names.mappings.prefix[mapping] ?? 0
    const entries = learnedEntriesOf(daemon, mapping)
    const applied = ipcache.prefixes.applied[row]
    learned.push({
      address: formatAddress(ipcache.prefixes.family(row), ipcache.prefixes.octets, row * 16),
      liveUntil: Math.max(...entries.map((entry) => names.entries.liveUntil[entry] ?? 0)),
      endpoints: entries.map((entry) => {
        const id = endpointId(names.entries.endpoint[entry] ?? 0)
        return daemon.endpoints.registry.get(id)?.name ?? 'unknown'
      }),
      labels:
        applied === 0 || applied !== ipcache.prefixes.wanted[row]
          ? undefined
          : labelSets.get(ipcache.prefixes.derived[row] ?? 0).labels.map(({ text }) => text),
    })
  }
  return learned
}

/** Forgets the name like expiry does. The caller commits. */
export function forget(daemon: Daemon, name: readonly string[]): void {
  for (const mapping of mappingsOf(daemon, name)) {
    for (const entry of learnedEntriesOf(daemon, mapping)) daemon.core.names.forget(entry)
  }
}

function mappingsOf({ core: { names } }: Daemon, name: readonly string[]): readonly number[] {
  const wire = wireName(name)
  const row = names.names.find(wire, 0, wire.length, hashOctets(wire, 0, wire.length))
  const found: number[] = []
  let mapping = row === 0 ? 0 : (names.names.firstMapping[row] ?? 0)
  for (; mapping !== 0; mapping = names.mappings.nextOfName[mapping] ?? 0) found.push(mapping)
  return found
}

function learnedEntriesOf({ core: { names } }: Daemon, mapping: number): readonly number[] {
  const found: number[] = []
  let entry = names.mappings.firstEntry[mapping] ?? 0
  for (; entry !== 0; entry = names.entries.nextOfMapping[entry] ?? 0) found.push(entry)
  return found
}

/** Differences from the state before the first query. To be called when no query is under way and every name is forgotten. */
export function leftovers(daemon: Daemon, before: readonly string[]): readonly string[] {
  const { core, proxy } = daemon
  const { names, mappings, entries } = core.names
  const faults: string[] = []
  const counts = {
    names: names.slots.used,
    mappings: mappings.slots.used,
    pairs: entries.slots.used,
    'queries in flight': proxy.upstream.inFlight.count,
  }
  for (const [what, count] of Object.entries(counts)) {
    if (count > 0) faults.push(`${count} ${what} are left`)
  }
  for (let row = 1; row <= names.slots.high; row++) {
    if (names.isUsed(row)) faults.push(`taught under a name without a query: ${names.format(row)}`)
  }
  const after = entriesOf(daemon)
  if (after.join() !== before.join()) {
    faults.push(`entries before: ${before.join(' ')}; after: ${after.join(' ')}`)
  }
  return faults
}

/** The datapath's entries, sorted: `PREFIX IDENTITY`. */
export function entriesOf({ core }: Daemon): readonly string[] {
  const { prefixes } = core.datapath.dump()
  const entries: string[] = []
  for (let i = 0; i < prefixes.count; i++) {
    const { family, octets, length } = prefixes.prefix(i)
    entries.push(`${formatAddress(family, octets)}/${length} ${prefixes.identity(i)}`)
  }
  return entries.sort()
}

/** Throws if a count of label sets, identities or rows is wrong. */
export function validate({ core }: Daemon): void {
  const { labelSets, ipcache, allocator, selectorLabels, names } = core
  labelSets.collect()
  const sets = [...selectorLabels.heldSets()]
  for (let row = 1; row <= names.names.slots.high; row++) {
    const set = names.names.labels[row] ?? 0
    if (names.names.isUsed(row) && set !== 0) sets.push(set)
  }
  const rows: number[] = []
  for (let row = 1; row <= names.mappings.slots.high; row++) {
    if (names.mappings.isUsed(row)) rows.push(names.mappings.prefix[row] ?? 0)
  }
  validateIpCache(ipcache, labelSets, allocator, { labelSets: sets, rows })
}
