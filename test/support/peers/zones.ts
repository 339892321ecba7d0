// The answers of a fake name server as plain data: fixed names, rotating pools, and names that get an address of their own. `answersFor`
// has the whole logic; nameserver.ts only serves it on sockets.

import type { Answer, RecordType, StringAnswer } from 'dns-packet'
import { formatAddress, parseAddress, type Family } from '../../../src/core/ip.ts'

/** Lower-case names without the final dot. A name that no table has does not exist (NXDOMAIN). */
export interface Zones {
  /** name -> addresses (A or AAAA by their form) or, for `-> NAME`, one CNAME. */
  readonly names?: Readonly<Record<string, readonly string[]>>
  /** name -> a pool. Each answer has the next few addresses of it, as with S3. */
  readonly pools?: Readonly<Record<string, Pool>>
  /** suffix -> every new name under it gets an address that no other name had before. */
  readonly fresh?: Readonly<Record<string, Fresh>>
  /** The TTL in seconds for everything without one; default 60. */
  readonly ttl?: number
}

export interface Pool {
  readonly first: string
  readonly size: number
  readonly perAnswer: number
  readonly ttl: number
}

export interface Fresh {
  readonly first4: string
  readonly first6?: string
  readonly ttl?: number
}

export interface ZoneAnswer {
  readonly exists: boolean
  readonly answers: Answer[]
}

/** The memory of a server: the position in each pool, and the address of each fresh name. */
export class ZoneState {
  readonly #zones: Zones
  readonly #poolAt = new Map<string, number>()
  readonly #freshAt = new Map<string, Map<string, number>>()

  constructor(zones: Zones) {
    this.#zones = zones
  }

  /** The answer section for a question. Follows CNAME chains inside the zones. */
  answersFor(question: string, type: RecordType): ZoneAnswer {
    const answers: Answer[] = []
    let name = question
    let exists = false
    for (let link = 0; link < 32; link++) {
      const entries = this.#entriesOf(name.toLowerCase())
      if (entries === undefined) return { exists, answers }
      exists = true
      const alias = entries.values.find((value) => value.startsWith('-> '))?.slice(3)
      if (alias === undefined) {
        answers.push(...addressesOf(name, type, entries.values, entries.ttl))
        return { exists, answers }
      }
      answers.push(record('CNAME', name, alias, entries.ttl))
      if (type === 'CNAME') return { exists, answers }
      name = alias
    }
    return { exists, answers }
  }

  #entriesOf(
    name: string,
  ): { readonly values: readonly string[]; readonly ttl: number } | undefined {
    const ttl = this.#zones.ttl ?? 60
    const fixed = this.#zones.names?.[name]
    if (fixed !== undefined) return { values: fixed, ttl }
    const pool = this.#zones.pools?.[name]
    if (pool !== undefined) return { values: this.#nextOf(name, pool), ttl: pool.ttl }
    const dot = name.indexOf('.')
    const suffix = Object.keys(this.#zones.fresh ?? {}).find((each) => name.endsWith(`.${each}`))
    const fresh = suffix === undefined ? undefined : this.#zones.fresh?.[suffix]
    if (dot < 0 || suffix === undefined || fresh === undefined) return undefined
    const place = this.#placeOf(suffix, name)
    const values = [addressAt(fresh.first4, place)]
    if (fresh.first6 !== undefined) values.push(addressAt(fresh.first6, place))
    return { values, ttl: fresh.ttl ?? ttl }
  }

  #nextOf(name: string, pool: Pool): string[] {
    const start = this.#poolAt.get(name) ?? 0
    this.#poolAt.set(name, (start + pool.perAnswer) % pool.size)
    return Array.from({ length: pool.perAnswer }, (_, i) =>
      addressAt(pool.first, (start + i) % pool.size),
    )
  }

  #placeOf(suffix: string, name: string): number {
    const places = this.#freshAt.get(suffix) ?? new Map<string, number>()
    this.#freshAt.set(suffix, places)
    const place = places.get(name) ?? places.size
    places.set(name, place)
    return place
  }
}

function addressesOf(
  name: string,
  type: RecordType,
  values: readonly string[],
  ttl: number,
): Answer[] {
  return values
    .filter((value) => type === (value.includes(':') ? 'AAAA' : 'A'))
    .map((value) => record(type === 'AAAA' ? 'AAAA' : 'A', name, value, ttl))
}

function record(
  type: 'A' | 'AAAA' | 'CNAME',
  name: string,
  data: string,
  ttl: number,
): StringAnswer {
  return { type, name, data, ttl, class: 'IN' }
}

/** The address that is `offset` after `first`. */
export function addressAt(first: string, offset: number): string {
  const start = parseAddress(first)
  if (start === undefined) throw new Error(`Cannot count from ${first}: not an address`)
  const octets = Uint8Array.from(start.octets)
  const family: Family = start.family
  let carry = offset
  for (let i = (family === 4 ? 4 : 16) - 1; i >= 0 && carry > 0; i--) {
    carry += octets[i]!
    octets[i] = carry & 0xff
    carry >>>= 8
  }
  return formatAddress(family, octets)
}
