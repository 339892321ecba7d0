// PortSets holds the policy entries of one (endpoint, identity) as (protocol, port) ranges that do not overlap. Equal lists of
// entries share one port set, for all endpoints. The set `ports` has the ranges in which packets are looked up. The set `entries`
// has the entries themselves, from which everything is read back. Only policies.ts writes it.

import type { RuleId } from '../../../core/ids.ts'
import type { PolicyEntry, PolicyVerdict } from '../../entries.ts'
import { data, pack, words } from '../netlink/keys.ts'
import { shapeOf, VERDICT_NUMBER } from '../rules/layout.ts'
import type { Mirror } from './mirror.ts'

/** A policy entry without its endpoint and identity. */
export interface PortEntry {
  readonly protocol: number
  readonly port: number
  readonly portBits: number
  readonly verdict: PolicyVerdict
  readonly rule: RuleId
}

export interface Range {
  readonly protocols: readonly [first: number, last: number]
  readonly ports: readonly [first: number, last: number]
  readonly verdict: PolicyVerdict
}

interface PortSet {
  readonly number: number
  readonly entries: readonly PortEntry[]
  users: number
}

const PORTS = 65_536
const PROTOCOLS = 256

export class PortSets {
  readonly #mirror: Mirror
  readonly #byText = new Map<string, PortSet>()
  readonly #byNumber = new Map<number, PortSet>()
  #next = 1

  constructor(mirror: Mirror) {
    this.#mirror = mirror
  }

  /** Returns the number of the set with these entries, and counts one more user. Makes the set if there is none. */
  take(entries: readonly PolicyEntry[]): number {
    const sorted = entries.map(plain).toSorted(compareEntries)
    const text = JSON.stringify(sorted)
    let set = this.#byText.get(text)
    if (set === undefined) {
      set = { number: this.#free(), entries: sorted, users: 0 }
      this.#byText.set(text, set)
      this.#byNumber.set(set.number, set)
      this.#write(set)
    }
    set.users++
    return set.number
  }

  /** Counts one more user of a restored set. Returns false if no set has this number. */
  use(number: number): boolean {
    const set = this.#byNumber.get(number)
    if (set !== undefined) set.users++
    return set !== undefined
  }

  /** Records a set that the kernel has under this number and that no policy uses yet. */
  restore(number: number, entries: readonly PortEntry[]): void {
    const set = { number, entries: entries.map(plain).toSorted(compareEntries), users: 0 }
    this.#byText.set(JSON.stringify(set.entries), set)
    this.#byNumber.set(number, set)
  }

  /** Removes the kernel's sets that no policy uses, and writes the missing sets. */
  settleRestored(): void {
    const used = [...this.#byNumber.values()].filter(({ users }) => users > 0)
    for (const set of this.#byNumber.values()) if (set.users === 0) this.#forget(set)
    this.#mirror.replace(
      'entries',
      used.flatMap(({ number, entries }) => entries.map((entry) => ledger(number, entry))),
    )
    this.#mirror.replace(
      'ports',
      used.flatMap(({ number, entries }) =>
        rangesOf(entries).map((range) => rangeElement(number, range)),
      ),
    )
  }

  /** Counts one user less, and removes a set without users. */
  release(number: number): void {
    const set = this.#byNumber.get(number)
    if (set === undefined || --set.users > 0) return
    this.#forget(set)
    for (const entry of set.entries) this.#mirror.remove('entries', ledger(number, entry))
    for (const range of rangesOf(set.entries)) {
      this.#mirror.remove('ports', rangeElement(number, range))
    }
  }

  #forget({ number, entries }: PortSet): void {
    this.#byNumber.delete(number)
    const text = JSON.stringify(entries)
    if (this.#byText.get(text)?.number === number) this.#byText.delete(text)
  }

  #write({ number, entries }: PortSet): void {
    for (const entry of entries) this.#mirror.put('entries', ledger(number, entry))
    for (const range of rangesOf(entries)) this.#mirror.put('ports', rangeElement(number, range))
  }

  #free(): number {
    while (this.#byNumber.has(this.#next)) this.#next = (this.#next % 0xffffffff) + 1
    return this.#next++
  }
}

/**
 * Cuts entries into ranges. The longest match on (protocol, port) wins: an exact port before a wider prefix, before any port,
 * before any protocol.
 */
export function rangesOf(entries: readonly PortEntry[]): readonly Range[] {
  const any = entries.find(({ protocol }) => protocol === 0)?.verdict
  const named = [...new Set(entries.map(({ protocol }) => protocol))].filter((each) => each !== 0)
  const ranges = named.flatMap((protocol) => {
    const own = entries.filter((entry) => entry.protocol === protocol)
    return portRanges(protocol, own, any)
  })
  if (any === undefined) return ranges
  return [
    ...ranges,
    ...gapsOf(
      named.toSorted((a, b) => a - b),
      any,
    ),
  ]
}

function portRanges(
  protocol: number,
  entries: readonly PortEntry[],
  any: PolicyVerdict | undefined,
): readonly Range[] {
  const verdicts = new Map(entries.map((entry) => [prefixKey(entry.port, entry.portBits), entry]))
  const lengths = [...new Set(entries.map(({ portBits }) => portBits))].toSorted((a, b) => b - a)
  const edges = new Set([0])
  for (const { port, portBits } of entries) {
    edges.add(port)
    edges.add(port + 2 ** (16 - portBits))
  }
  const sorted = [...edges].filter((edge) => edge < PORTS).toSorted((a, b) => a - b)
  const ranges: Range[] = []
  sorted.forEach((first, i) => {
    const last = (sorted[i + 1] ?? PORTS) - 1
    const length = lengths.find((bits) => verdicts.has(prefixKey(first, bits)))
    const found = length === undefined ? undefined : verdicts.get(prefixKey(first, length))
    const verdict = found?.verdict ?? any
    if (verdict === undefined) return
    const before = ranges.at(-1)
    if (before?.verdict === verdict && before.ports[1] === first - 1) {
      ranges[ranges.length - 1] = { ...before, ports: [before.ports[0], last] }
    } else ranges.push({ protocols: [protocol, protocol], ports: [first, last], verdict })
  })
  return ranges
}

/** The ranges of protocols between protocols that have entries of their own. */
function gapsOf(named: readonly number[], verdict: PolicyVerdict): readonly Range[] {
  const ranges: Range[] = []
  let first = 0
  for (const next of [...named, PROTOCOLS]) {
    if (next > first) ranges.push({ protocols: [first, next - 1], ports: [0, PORTS - 1], verdict })
    first = next + 1
  }
  return ranges
}

function prefixKey(port: number, bits: number): number {
  return bits * PORTS + (port & ((0xffff << (16 - bits)) & 0xffff))
}

/** The fields in a fixed order, so that equal entries have equal text. */
function plain({ protocol, port, portBits, verdict, rule }: PortEntry): PortEntry {
  return { protocol, port, portBits, verdict, rule }
}

function compareEntries(a: PortEntry, b: PortEntry): number {
  return a.protocol - b.protocol || a.portBits - b.portBits || a.port - b.port
}

const ENTRY_KEY = shapeOf('entries').key
const PORTS_KEY = shapeOf('ports').key

function ledger(
  number: number,
  { protocol, port, portBits, verdict, rule }: PortEntry,
): { readonly key: Uint8Array; readonly data: Uint8Array } {
  return {
    key: pack(ENTRY_KEY, [number, protocol, portBits, port]),
    data: words(VERDICT_NUMBER[verdict], rule),
  }
}

function rangeElement(
  number: number,
  { protocols, ports, verdict }: Range,
): { readonly key: Uint8Array; readonly keyEnd: Uint8Array; readonly data: Uint8Array } {
  return {
    key: pack(PORTS_KEY, [number, protocols[0], ports[0]]),
    keyEnd: pack(PORTS_KEY, [number, protocols[1], ports[1]]),
    data: data(VERDICT_NUMBER[verdict]),
  }
}
