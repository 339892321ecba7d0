// Guarded addresses never get FQDN labels, whatever a name server says (docs/spec/semantics 4, A16): loopback, link-local, unspecified,
// multicast, broadcast, the node's own, and prefixes from the configuration. An IPv6 address that embeds such an IPv4 address is
// guarded too. A policy document can open the configured prefixes and link-local addresses to its names (`namegate.io/allow-guarded`),
// but neither the machine's own addresses nor embedded ones. Read on the packet path: a few probes, no allocation.

import { parsePrefix, widthOf, type Family, type Prefix } from '../core/ip.ts'
import { PrefixIndex } from '../core/tables/prefix-index.ts'

/** Guarded whatever a document says. */
const NEVER = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '224.0.0.0/4',
  '255.255.255.255/32',
  '::/128',
  '::1/128',
  'ff00::/8',
]
const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10']

/** Ranges that are reached inside a site only (RFC 1918, RFC 6598, RFC 4193): `dns.guard-private` adds them. */
export const PRIVATE_PREFIXES: readonly Prefix[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
].flatMap(parse)

/** The levels of `levelOf`: any name may label the address; only names of documents that say so; no name. */
export const UNGUARDED = 0
export const GUARDED_UNLESS_SAID = 1
export const GUARDED_ALWAYS = 2

/** Where an IPv6 address that begins with `head` holds the four octets of an IPv4 address. */
interface Embedding {
  readonly head: readonly number[]
  readonly at: readonly number[]
  /** The octets are stored with every bit turned. */
  readonly turned?: boolean
  /** The place is one of several possible: a reading in 0.0.0.0/8 is a reading at the wrong place. */
  readonly possible?: boolean
}

const LOCAL_NAT64 = [0, 0x64, 0xff, 0x9b, 0, 1]
const TEREDO = [0x20, 0x01, 0, 0]

const EMBEDDINGS: readonly Embedding[] = [
  // NAT64, 64:ff9b::/96 (RFC 6052 2.1).
  { head: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], at: [12, 13, 14, 15] },
  // NAT64 with a local prefix of 48, 56, 64 or 96 bits inside 64:ff9b:1::/48 (RFC 8215, RFC 6052 2.2).
  { head: LOCAL_NAT64, at: [6, 7, 9, 10], possible: true },
  { head: LOCAL_NAT64, at: [7, 9, 10, 11], possible: true },
  { head: LOCAL_NAT64, at: [9, 10, 11, 12], possible: true },
  { head: LOCAL_NAT64, at: [12, 13, 14, 15], possible: true },
  // 6to4, 2002::/16 (RFC 3056 2).
  { head: [0x20, 0x02], at: [2, 3, 4, 5] },
  // Teredo, 2001::/32: server and client (RFC 4380 4).
  { head: TEREDO, at: [4, 5, 6, 7] },
  { head: TEREDO, at: [12, 13, 14, 15], turned: true },
  // IPv4-translated, ::ffff:0:0:0/96 (RFC 2765 2.1).
  { head: [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], at: [12, 13, 14, 15] },
  // IPv4-compatible, ::/96 (RFC 4291 2.5.5.1).
  { head: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], at: [12, 13, 14, 15] },
]

export class Guard {
  readonly #all: Listed
  readonly #never: Listed
  readonly #embedded = new Uint8Array(16)

  constructor(options: {
    readonly nodeAddresses: readonly Prefix[]
    readonly protectedPrefixes: readonly Prefix[]
  }) {
    const never = [...NEVER.flatMap(parse), ...options.nodeAddresses]
    this.#never = new Listed(never)
    this.#all = new Listed([...never, ...LINK_LOCAL.flatMap(parse), ...options.protectedPrefixes])
  }

  /** Whether the address of 16 octets at `offset` is guarded. */
  isGuarded(family: Family, octets: Uint8Array, offset: number): boolean {
    return this.#all.has(family, octets, offset) || this.#embeds(family, octets, offset)
  }

  /** How far the address is guarded: UNGUARDED, GUARDED_UNLESS_SAID or GUARDED_ALWAYS. */
  levelOf(family: Family, octets: Uint8Array, offset: number): number {
    if (!this.isGuarded(family, octets, offset)) return UNGUARDED
    const isAlways = this.#never.has(family, octets, offset) || this.#embeds(family, octets, offset)
    return isAlways ? GUARDED_ALWAYS : GUARDED_UNLESS_SAID
  }

  /** Whether it embeds an IPv4 address that is guarded. */
  #embeds(family: Family, octets: Uint8Array, offset: number): boolean {
    if (family === 4) return false
    for (const { head, at, turned, possible } of EMBEDDINGS) {
      if (!startsWith(octets, offset, head)) continue
      const flip = turned === true ? 0xff : 0
      for (let i = 0; i < 4; i++) this.#embedded[i] = octets[offset + at[i]!]! ^ flip
      if (possible === true && this.#embedded[0] === 0) continue
      if (this.#all.has(4, this.#embedded, 0)) return true
    }
    return false
  }
}

/** Addresses inside any of some prefixes. */
class Listed {
  readonly #index: PrefixIndex
  readonly #lengths = { 4: new Set<number>(), 6: new Set<number>() }
  /** 1 where some prefix has addresses with that first octet: few do, and the others need no probe (0.3 us less an address). */
  readonly #firsts = { 4: new Uint8Array(256), 6: new Uint8Array(256) }

  constructor(prefixes: readonly Prefix[]) {
    this.#index = new PrefixIndex({ capacity: prefixes.length })
    for (const { family, octets, length } of prefixes) {
      if (this.#index.find(family, octets, 0, length) !== 0) continue
      this.#index.add(family, octets, 0, length)
      this.#lengths[family].add(length)
      const last = octets[0]! | (0xff >> Math.min(length, 8))
      this.#firsts[family].fill(1, octets[0], last + 1)
    }
  }

  has(family: Family, octets: Uint8Array, offset: number): boolean {
    if (this.#firsts[family][octets[offset]!] === 0) return false
    for (const length of this.#lengths[family]) {
      if (length <= widthOf(family) && this.#index.findAround(family, octets, offset, length) !== 0)
        return true
    }
    return false
  }
}

function startsWith(octets: Uint8Array, offset: number, head: readonly number[]): boolean {
  for (let i = 0; i < head.length; i++) if (octets[offset + i] !== head[i]) return false
  return true
}

function parse(text: string): readonly Prefix[] {
  const result = parsePrefix(text)
  return result.kind === 'ok' ? [result.prefix] : []
}
