// Compares the verdict on a name with the same verdict from a cache, for docs/decisions/0010: microseconds a query of 20,000 names in turn,
// half of them permitted. The cache is one that would fit the packet path: direct-mapped in typed arrays by endpoint and the hash that the
// query's reader already made, with names compared octet by octet and entries of an older policy revision void. It misses if two names
// share a slot, and for every new name.

import { DnsVerdicts, MAY_ASK } from '../../src/enforcement/dns-verdicts.ts'
import { endpointId } from '../../src/core/ids.ts'
import { hashOctets, hashPair } from '../../src/core/tables/keyed-hash.ts'
import { nameLength } from '../../src/core/name.ts'
import { NamePatterns } from '../../src/policy/match/name-patterns.ts'
import { TCP, UDP } from '../../src/core/protocol.ts'
import { Random } from '../support/models/random.ts'
import { runBench, type Figure } from './support/bench.ts'
import { measure } from './support/measure.ts'
import { mkQuery, PacketSlab } from './support/packets.ts'
import { mkNames, mkSelectors } from './support/selectors.ts'

const SIZES = [10, 1_000, 100_000]
const NAMES = 20_000
const ENTRIES = 65_536
const CELL = 64
const HEADER = 12
const ENDPOINT = endpointId(1)

const random = new Random(30)

class Cache {
  readonly #keys = new Uint32Array(ENTRIES)
  readonly #revisions = new Uint32Array(ENTRIES)
  readonly #verdicts = new Uint8Array(ENTRIES)
  readonly #names = new Uint8Array(ENTRIES * CELL)
  readonly #verdictsOf: DnsVerdicts
  readonly #revision = 1
  misses = 0

  constructor(verdicts: DnsVerdicts) {
    this.#verdictsOf = verdicts
  }

  judge(octets: Uint8Array, at: number, length: number, hash: number): number {
    const key = hashPair(hash, ENDPOINT)
    const entry = key & (ENTRIES - 1)
    const isKnown = this.#keys[entry] === key && this.#revisions[entry] === this.#revision
    if (isKnown && this.#isName(entry, octets, at, length)) return this.#verdicts[entry]!
    this.misses++
    const verdict = this.#verdictsOf.judge(ENDPOINT, UDP, octets, at) === MAY_ASK ? 1 : 0
    if (length > CELL) return verdict
    this.#keys[entry] = key
    this.#revisions[entry] = this.#revision
    this.#verdicts[entry] = verdict
    for (let i = 0; i < length; i++) this.#names[entry * CELL + i] = octets[at + i]!
    return verdict
  }

  #isName(entry: number, octets: Uint8Array, at: number, length: number): boolean {
    const names = this.#names
    for (let i = 0; i < length; i++) if (names[entry * CELL + i] !== octets[at + i]) return false
    return true
  }
}

interface Names {
  readonly slab: PacketSlab
  readonly lengths: Uint16Array
  readonly hashes: Uint32Array
}

/** Names as they are in queries. The reader makes their hashes, which cost nothing here. */
function mkNameSlab(names: Names['slab']): Names {
  const { octets, offsets, count } = names
  const lengths = new Uint16Array(count)
  const hashes = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    const at = offsets[i]! + HEADER
    lengths[i] = nameLength(octets.subarray(at))
    hashes[i] = hashOctets(octets, at, lengths[i]!)
  }
  return { slab: names, lengths, hashes }
}

function judgeAll(verdicts: DnsVerdicts, { slab: { octets, offsets, count } }: Names): number {
  let may = 0
  for (let i = 0; i < count; i++) {
    if (verdicts.judge(ENDPOINT, UDP, octets, offsets[i]! + HEADER) === MAY_ASK) may++
  }
  return may
}

function judgeCached(cache: Cache, { slab, lengths, hashes }: Names): number {
  const { octets, offsets, count } = slab
  let may = 0
  for (let i = 0; i < count; i++) {
    may += cache.judge(octets, offsets[i]! + HEADER, lengths[i]!, hashes[i]!)
  }
  return may
}

function run(): readonly Figure[] {
  return SIZES.flatMap((size) => {
    const patterns = mkSelectors(random, size)
    const verdicts = new DnsVerdicts({ patterns: new NamePatterns() })
    const rules = { kind: 'names', patterns } as const
    const asking = { rules, audited: undefined, deniedBy: 0, auditedBy: 0 }
    verdicts.set(ENDPOINT, { [UDP]: asking, [TCP]: asking }, () => asking)
    const texts = mkNames(random, { selectors: patterns, count: NAMES, matching: 50 })
    const names = mkNameSlab(new PacketSlab(texts.map((name, i) => mkQuery(i, name))))
    const cache = new Cache(verdicts)
    if (judgeCached(cache, names) !== judgeAll(verdicts, names)) throw new Error('verdicts differ')
    cache.misses = 0
    judgeCached(cache, names)
    const missed = cache.misses / NAMES
    const timings = measure(
      [
        { name: 'index', operations: NAMES, run: () => judgeAll(verdicts, names) },
        { name: 'cache', operations: NAMES, run: () => judgeCached(cache, names) },
      ],
      { warmUp: 10, counted: 21 },
    )
    const label = `${size.toLocaleString('en-US')} patterns`
    const figure = (name: 'index' | 'cache'): Figure => {
      const { median, least, most } = timings.of(name)
      return { name: `${name}, ${label}`, value: median, unit: 'us', spread: [least, most] }
    }
    return [
      figure('index'),
      figure('cache'),
      { name: `cache : index, ${label}`, value: timings.ratio('cache', 'index'), unit: 'x' },
      { name: `missed, ${label}`, value: missed, unit: '' },
    ]
  })
}

await runBench({
  name: 'dns-verdicts',
  about: `${NAMES.toLocaleString('en-US')} names in turn, from the index and cached`,
  run,
})
