// PolicyTable holds policy entries by endpoint and identity: the wanted elements of `policies`, and their port sets. The number
// of entries is bounded. An entry without room is refused before anything is written.

import { endpointId, identity, type EndpointId, type Identity } from '../../../core/ids.ts'
import type { PolicyEntry, PolicyKey } from '../../entries.ts'
import { portEntryOf } from './dump.ts'
import { data, pack, wordAt } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Mirror } from './mirror.ts'
import { PortSets, type PortEntry } from './port-sets.ts'

interface Cell {
  readonly endpoint: EndpointId
  readonly identity: Identity
  readonly entries: Map<number, PolicyEntry>
  /** The port set that the kernel has for this cell; 0 means none. */
  set: number
}

const KEY = shapeOf('policies').key

export class PolicyTable {
  readonly #mirror: Mirror
  readonly #sets: PortSets
  readonly #capacity: number
  readonly #cells = new Map<EndpointId, Map<Identity, Cell>>()
  readonly #touched = new Set<Cell>()
  #count = 0

  constructor(mirror: Mirror, capacity: number) {
    this.#mirror = mirror
    this.#sets = new PortSets(mirror)
    this.#capacity = capacity
  }

  /** Restores what the mirror has of the kernel. Port sets keep their numbers. */
  restore(): void {
    const sets = new Map<number, PortEntry[]>()
    for (const { key, data: found } of this.#mirror.list('entries')) {
      if (found === undefined) continue
      const number = wordAt(key, 0)
      sets.set(number, [...(sets.get(number) ?? []), portEntryOf(key, found)])
    }
    for (const [number, entries] of sets) this.#sets.restore(number, entries)
    for (const { key, data: found } of [...this.#mirror.list('policies')]) {
      const number = found === undefined ? 0 : wordAt(found, 4)
      if (!this.#sets.use(number)) {
        this.#mirror.remove('policies', { key })
        continue
      }
      const cell = this.#make(endpointId(wordAt(key, 4)), identity(wordAt(key, 0)))
      cell.set = number
      for (const entry of sets.get(number) ?? []) {
        const { endpoint, identity } = cell
        cell.entries.set(keyOf({ endpoint, identity, ...entry }), { endpoint, identity, ...entry })
        this.#count++
      }
    }
    this.#sets.settleRestored()
  }

  /** Returns the earlier entry, undefined if there was none, or `full` if the entry is new and there is no room. */
  upsert(entry: PolicyEntry): PolicyEntry | undefined | 'full' {
    const { endpoint, identity } = entry
    const cell = this.#cellOf(endpoint, identity)
    const before = cell?.entries.get(keyOf(entry))
    if (before === undefined && this.#count >= this.#capacity) return 'full'
    if (before === undefined) this.#count++
    const target = cell ?? this.#make(endpoint, identity)
    target.entries.set(keyOf(entry), entry)
    this.#touched.add(target)
    return before
  }

  /** Removes an entry and returns it. */
  remove(key: PolicyKey): PolicyEntry | undefined {
    const cell = this.#cellOf(key.endpoint, key.identity)
    const before = cell?.entries.get(keyOf(key))
    if (cell === undefined || before === undefined) return undefined
    cell.entries.delete(keyOf(key))
    this.#count--
    this.#touched.add(cell)
    return before
  }

  /** Writes the changes since the last call into the mirror. */
  settle(): void {
    for (const cell of this.#touched) {
      const before = cell.set
      const key = pack(KEY, [cell.identity, cell.endpoint])
      if (cell.entries.size === 0) {
        cell.set = 0
        this.#mirror.remove('policies', { key })
        const identities = this.#cells.get(cell.endpoint)
        identities?.delete(cell.identity)
        if (identities?.size === 0) this.#cells.delete(cell.endpoint)
      } else {
        cell.set = this.#sets.take([...cell.entries.values()])
        this.#mirror.put('policies', { key, data: data(cell.set) })
      }
      if (before !== 0) this.#sets.release(before)
    }
    this.#touched.clear()
  }

  /** Returns the entry that a packet meets at one key, by the longest match. */
  find(
    endpoint: EndpointId,
    identity: Identity,
    protocol: number,
    port: number,
  ): PolicyEntry | undefined {
    let best: PolicyEntry | undefined
    for (const entry of this.#cellOf(endpoint, identity)?.entries.values() ?? []) {
      const isMatch =
        entry.protocol === 0 ||
        (entry.protocol === protocol && (entry.port ^ port) >> (16 - entry.portBits) === 0)
      if (isMatch && (best === undefined || lengthOf(entry) > lengthOf(best))) best = entry
    }
    return best
  }

  #cellOf(endpoint: EndpointId, identity: Identity): Cell | undefined {
    return this.#cells.get(endpoint)?.get(identity)
  }

  #make(endpoint: EndpointId, identity: Identity): Cell {
    const cell: Cell = { endpoint, identity, entries: new Map(), set: 0 }
    const identities = this.#cells.get(endpoint) ?? new Map<Identity, Cell>()
    this.#cells.set(endpoint, identities.set(identity, cell))
    return cell
  }
}

function keyOf({ protocol, port, portBits }: PolicyKey): number {
  return (protocol * 32 + portBits) * 65_536 + port
}

function lengthOf({ protocol, portBits }: PolicyEntry): number {
  return protocol === 0 ? 0 : 1 + portBits
}
