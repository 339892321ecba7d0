// Interfaces that carry the programs and belong to no endpoint: their name matches a pattern of the configuration, or an endpoint waits for an
// interface of that name but its generation had another. A fenced interface may do DNS only, until an endpoint is known. An endpoint's entry
// replaces the fence in one write, and a fence replaces the entry of an endpoint that left, so there is no moment without either. Written
// by the adapter only.
//
// In ng_endpoints a fence is an entry with endpoint 0. Its generation is the interface's index, so that the neighbours of two fenced
// interfaces stay apart. A fence outlives the process like every entry.

import { endpointId, generation } from '../../../core/ids.ts'
import type { Bpf, Posix } from '../../../native/native.ts'
import { attachInterface, detach, markAttached, type Programs, writeEntry } from './attach.ts'
import { isWithoutLinkHeader, LOOPBACK } from '../../hooks/find-hook.ts'
import type { Side } from '../../hooks/hook-index.ts'
import type { LinkEvents, LinkItem } from '../../hooks/link-events.ts'
import type { Gate } from './gate.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import { decodeEndpoint, decodeHookKey, encodeHookKey } from '../maps/layout.ts'

export interface FencesOptions {
  readonly bpf: Bpf
  readonly posix: Posix
  readonly programs: Programs
  readonly links: string
  readonly endpoints: KernelMap
  readonly linkEvents: LinkEvents
  readonly gate: Gate
  /** The side that packets come in of an interface that an endpoint waits for; undefined when none does. */
  readonly awaitedSide: (name: string) => Side | undefined
  /** Whether an endpoint has the interface. */
  readonly isOwned: (ifindex: number) => boolean
}

export class Fences {
  readonly #options: FencesOptions
  /** Interface index -> name; those found in the kernel have none until they are looked at. */
  readonly #fenced = new Map<number, string>()
  #patterns: readonly string[] = []
  /** Why an interface could not be fenced, by name; tried again with every look. */
  readonly #failed = new Map<string, string>()

  constructor(options: FencesOptions) {
    this.#options = options
    options.endpoints.forEach((keys, key, values, value) => {
      if (decodeEndpoint(values, value).fenced) this.#fenced.set(decodeHookKey(keys, key).id, '')
    })
  }

  /** Names of what is fenced, sorted. */
  get names(): readonly string[] {
    return [...this.#fenced.values()].toSorted()
  }

  /** Index and name of what is fenced; the name is empty until the first look. */
  interfaces(): Iterable<readonly [ifindex: number, name: string]> {
    return this.#fenced
  }

  has(ifindex: number): boolean {
    return this.#fenced.has(ifindex)
  }

  /** Makes a fence again that another process removed. */
  putBack(ifindex: number): void {
    const name = this.#fenced.get(ifindex)
    if (name !== undefined) this.#put({ ifindex, name })
  }

  /** What matches and is not fenced, and why. */
  get failures(): ReadonlyMap<string, string> {
    return this.#failed
  }

  /** Makes these the patterns; what matches none any more is let go. */
  set(patterns: readonly string[]): void {
    const { gate } = this.#options
    for (const pattern of patterns) gate.add(pattern)
    for (const pattern of this.#patterns) gate.remove(pattern)
    this.#patterns = patterns
    this.#lookAtAll()
  }

  /** The patterns and endpoints of this process are known: removes what an earlier process left. */
  settle(): void {
    this.#options.gate.dropLeftovers()
    this.#lookAtAll()
  }

  /** Follows interfaces that came, went or were renamed. After endpoints have taken theirs. */
  follow(news: readonly LinkItem[] | 'all'): void {
    if (news === 'all') {
      this.#lookAtAll()
      return
    }
    for (const { ifindex, name } of news) this.#look(ifindex, name)
  }

  /** What an interface of that name is to be may have changed. */
  lookAt(name: string): void {
    const ifindex = this.#options.posix.ifIndex(name)
    if (ifindex > 0) this.#look(ifindex, name)
  }

  /** An endpoint leaves an interface: true when a fence stands there now. */
  takeOver(ifindex: number): boolean {
    const item = this.#options.linkEvents.list().find((each) => each.ifindex === ifindex)
    return item !== undefined && this.sideOf(item.name) !== undefined && this.#put(item)
  }

  /** An endpoint has taken the interface. */
  giveUp(ifindex: number): void {
    this.#fenced.delete(ifindex)
  }

  /** Where packets come in of an interface that is to be fenced. */
  sideOf(name: string): Side | undefined {
    if (name === 'lo') return undefined
    const isMatch = this.#patterns.some((pattern) => matchesPattern(pattern, name))
    return this.#options.awaitedSide(name) ?? (isMatch ? 'ingress' : undefined)
  }

  #lookAtAll(): void {
    const there = this.#options.linkEvents.list()
    const indexes = new Set(there.map(({ ifindex }) => ifindex))
    for (const ifindex of [...this.#fenced.keys()]) {
      if (!indexes.has(ifindex)) this.#remove(ifindex)
    }
    this.#failed.clear()
    for (const { ifindex, name } of there) this.#look(ifindex, name)
  }

  #look(ifindex: number, name: string): void {
    const isFenced = this.#fenced.has(ifindex)
    const isThere = this.sideOf(name) !== undefined && this.#options.posix.ifIndex(name) === ifindex
    if (!isThere) {
      if (isFenced) this.#remove(ifindex)
      this.#failed.delete(name)
    } else if (this.#fenced.get(ifindex) !== name && !this.#options.isOwned(ifindex)) {
      this.#put({ ifindex, name })
    }
  }

  /** Entry first, then programs: nothing is judged by half. */
  #put({ ifindex, name }: LinkItem): boolean {
    const { bpf, posix, programs, endpoints } = this.#options
    const type = posix.ifType(name)
    const side = this.sideOf(name)
    if (type === LOOPBACK || type < 0 || side === undefined) return false
    const key = { kind: 'interface', id: ifindex } as const
    const refused = writeEntry(endpoints, key, {
      id: endpointId(0),
      generation: generation(ifindex),
      enforcing: true,
      audit: false,
      scoped: false,
      fenced: true,
      layer3: isWithoutLinkHeader(type),
    })
    const failure =
      refused ?? attachInterface(bpf, programs, ifindex, side) ?? markAttached(endpoints, key)
    if (failure !== undefined) {
      this.#failed.set(name, failure)
      return false
    }
    this.#failed.delete(name)
    this.#fenced.set(ifindex, name)
    return true
  }

  #remove(ifindex: number): void {
    const { bpf, links, endpoints } = this.#options
    const key = { kind: 'interface', id: ifindex } as const
    this.#fenced.delete(ifindex)
    detach(bpf, links, key)
    endpoints.delete(encodeHookKey(key))
  }
}

/** A name, or its beginning and a final `*`. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}
