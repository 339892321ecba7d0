// This file reads everything in force back from the kernel's sets: at once, or in slices with a pause after each, while commits
// continue. A set that changes during its listing is listed again, a few times. The last listing is then used as it is. It can
// have each changed element as it was before or after the change.

import { endpointId, generation, identity, ruleId, type EndpointId } from '../../../core/ids.ts'
import type { Family, Prefix } from '../../../core/ip.ts'
import type {
  DatapathDump,
  DatapathEndpoint,
  Mode,
  PolicyEntry,
  PolicyVerdict,
} from '../../entries.ts'
import { PrefixBatch } from '../../prefix-batch.ts'
import { shortAt, wordAt } from '../netlink/keys.ts'
import { MODE_NUMBER, VERDICTS } from '../rules/layout.ts'
import type { Element } from './mirror.ts'
import type { PortEntry } from './port-sets.ts'
import { eachElement, eachElementInSlices, type Asking } from '../netlink/read-elements.ts'

type Slices<T> = Generator<undefined, T>
/** Visits the elements of a set, with or without pauses. */
type Visit = (name: string, visit: (element: Element) => void) => Iterable<undefined>

/** Bits of an endpoint's second word. */
export const ENFORCING = 1
export const AUDIT = 2
export const SCOPED = 4
export const SIDE_OUT = 8

export class DumpReader {
  readonly #from: Asking

  constructor(from: Asking) {
    this.#from = from
  }

  read(): DatapathDump {
    const reading = this.#read(this.#atOnce)
    for (;;) {
      const step = reading.next()
      if (step.done === true) return step.value
    }
  }

  readInSlices(): Slices<DatapathDump> {
    return this.#read((name, visit) => {
      return eachElementInSlices(this.#from, name, visit)
    })
  }

  *#read(each: Visit): Slices<DatapathDump> {
    const prefixes = new PrefixBatch()
    yield* readPrefixes(each, 4, prefixes)
    yield* readPrefixes(each, 6, prefixes)
    const policies = yield* readPolicies(each)
    const endpoints = yield* readEndpoints(each)
    return { mode: this.mode(), prefixes, policies, endpoints }
  }

  mode(): Mode {
    let mode: Mode = 'enforce'
    eachElement(this.#from, 'mode', ({ key }) => {
      mode = wordAt(key, 0) === MODE_NUMBER.bypass ? 'bypass' : 'audit'
    })
    return mode
  }

  /** Makes a listing without pauses. */
  readonly #atOnce: Visit = (name, visit) => {
    eachElement(this.#from, name, visit)
    return []
  }
}

function* readPrefixes(each: Visit, family: Family, into: PrefixBatch): Slices<void> {
  const octets = new Uint8Array(16)
  const width = family === 4 ? 4 : 16
  const add = (
    key: Uint8Array,
    at: number,
    length: number,
    id: number,
    addressClass: number,
  ): void => {
    octets.fill(0)
    octets.set(key.subarray(at, at + width))
    const scope = wordAt(key, 0)
    into.add({ family, octets, length }, identity(id), identity(addressClass), scope)
  }
  yield* each(`exact${family}`, ({ key, data }) => {
    if (data !== undefined) add(key, 4, width * 8, wordAt(data, 4), wordAt(data, 12))
  })
  yield* each(`prefixes${family}`, ({ key, data }) => {
    if (data !== undefined) add(key, 8, wordAt(key, 4), wordAt(data, 0), wordAt(data, 4))
  })
}

function* readPolicies(each: Visit): Slices<readonly PolicyEntry[]> {
  const sets = new Map<number, PortEntry[]>()
  yield* each('entries', ({ key, data }) => {
    if (data === undefined) return
    const set = sets.get(wordAt(key, 0)) ?? []
    set.push(portEntryOf(key, data))
    sets.set(wordAt(key, 0), set)
  })
  const entries: PolicyEntry[] = []
  yield* each('policies', ({ key, data }) => {
    const head = { identity: identity(wordAt(key, 0)), endpoint: endpointId(wordAt(key, 4)) }
    for (const entry of sets.get(data === undefined ? 0 : wordAt(data, 4)) ?? []) {
      entries.push({ ...head, ...entry })
    }
  })
  return entries
}

function* readEndpoints(each: Visit): Slices<readonly DatapathEndpoint[]> {
  const sources = yield* readSources(each)
  const endpoints: DatapathEndpoint[] = []
  yield* each('endpoints', ({ key, data }) => {
    if (data === undefined) return
    const id = endpointId(wordAt(key, 0))
    const flags = wordAt(data, 4)
    endpoints.push({
      id,
      generation: generation(wordAt(data, 0)),
      enforcing: (flags & ENFORCING) !== 0,
      audit: (flags & AUDIT) !== 0,
      scoped: (flags & SCOPED) !== 0,
      sources: sources.get(id) ?? [],
      hookKey: `interface:${wordAt(data, 8)}`,
    })
  })
  return endpoints
}

function* readSources(each: Visit): Slices<ReadonlyMap<EndpointId, readonly Prefix[]>> {
  const sources = new Map<EndpointId, Prefix[]>()
  for (const family of [4, 6] as const) {
    yield* each(`sources${family}`, ({ key, keyEnd }) => {
      const id = endpointId(wordAt(key, 0))
      const list = sources.get(id) ?? []
      list.push(prefixOf(family, key.subarray(4), (keyEnd ?? key).subarray(4)))
      sources.set(id, list)
    })
  }
  return sources
}

/** Decodes an element of the set `entries`. */
export function portEntryOf(key: Uint8Array, data: Uint8Array): PortEntry {
  return {
    protocol: key[4]!,
    portBits: wordAt(key, 8),
    port: shortAt(key, 12),
    verdict: verdictOf(wordAt(data, 0)),
    rule: ruleId(wordAt(data, 4)),
  }
}

/** The prefix that equals this range. */
export function prefixOf(family: Family, first: Uint8Array, last: Uint8Array): Prefix {
  const octets = new Uint8Array(16)
  const width = family === 4 ? 4 : 16
  octets.set(first.subarray(0, width))
  let length = 0
  for (; length < width * 8; length++) {
    const bit = 0x80 >> (length & 7)
    if (((first[length >> 3]! ^ last[length >> 3]!) & bit) !== 0) break
  }
  return { family, octets, length }
}

function verdictOf(number: number): PolicyVerdict {
  const verdict = VERDICTS[number]
  return verdict === undefined || verdict === 'none' ? 'deny' : verdict
}
