// Fences manages interfaces that carry the programs but belong to no endpoint. An interface is fenced for one of two reasons. Its
// name matches a pattern of the configuration, or an endpoint waits for an interface of that name, because its generation had
// another interface. A fenced interface may do DNS only, until its endpoint is known. An endpoint's entry replaces the fence in
// one write. When an endpoint leaves, a fence replaces its entry in one write. So the interface always has a fence or an entry.
// Only the adapter writes fences.
//
// In ng_endpoints a fence is an entry with endpoint 0. Its generation is the interface's index, so two fenced interfaces do not
// share their neighbours. A fence outlives the process, like every entry.

import { endpointId, generation } from '../../../core/ids.ts'
import { matchesPattern } from '../../../core/name-pattern.ts'
import type { Posix } from '../../../native/native.ts'
import { detach, markAttached, writeEntry } from './attach.ts'
import { isWithoutLinkHeader, LOOPBACK } from '../../hooks/find-hook.ts'
import type { Side } from '../../hooks/hook-index.ts'
import type { LinkEvents, LinkItem } from '../../hooks/link-events.ts'
import type { Gate } from './gate.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import { decodeEndpoint, decodeHookKey, encodeHookKey } from '../maps/layout.ts'
import type { TcDescriptors, TcPrograms } from './tc-programs.ts'

export interface FencesOptions {
  readonly tc: TcPrograms
  readonly posix: Posix
  readonly programs: TcDescriptors
  readonly links: string
  readonly endpoints: KernelMap
  readonly linkEvents: LinkEvents
  readonly gate: Gate
  /**
   * Returns the side at which packets arrive on an interface for which an endpoint waits, or undefined if no endpoint waits for
   * it.
   */
  readonly awaitedSide: (name: string) => Side | undefined
  /** Returns true if the interface belongs to an endpoint. */
  readonly isOwned: (ifindex: number) => boolean
}

export class Fences {
  readonly #options: FencesOptions
  /** Interface index -> name. A fence that was found in the kernel has no name until the first look at its interface. */
  readonly #fenced = new Map<number, string>()
  #patterns: readonly string[] = []
  /** By name, why an interface could not be fenced. Every look at all interfaces tries again. */
  readonly #failed = new Map<string, string>()

  constructor(options: FencesOptions) {
    this.#options = options
    options.endpoints.forEach((keys, key, values, value) => {
      if (decodeEndpoint(values, value).fenced) this.#fenced.set(decodeHookKey(keys, key).id, '')
    })
  }

  /** Names of the fenced interfaces, sorted. */
  get names(): readonly string[] {
    return [...this.#fenced.values()].toSorted()
  }

  /** Index and name of each fenced interface. The name is empty until the first look at the interface. */
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

  /** Interfaces that should be fenced but are not, with the reason. */
  get failures(): ReadonlyMap<string, string> {
    return this.#failed
  }

  /** Sets the patterns. An interface that no pattern matches any longer loses its fence. */
  set(patterns: readonly string[]): void {
    const { gate } = this.#options
    const before = this.#patterns
    this.#patterns = patterns
    for (const pattern of before) if (!patterns.includes(pattern)) gate.remove(pattern)
    this.#lookAtAll()
    // An interface that is there gets its fence first, because the gate would drop its queries until then.
    for (const pattern of patterns) if (!before.includes(pattern)) gate.add(pattern)
  }

  /**
   * Call this when the patterns and endpoints of this process are known. Removes the fences that only an earlier process wanted.
   */
  settle(): void {
    this.#options.gate.dropStale()
    this.#lookAtAll()
  }

  /** Follows interfaces that appeared, disappeared or were renamed. Call this after endpoints have taken their interfaces. */
  follow(events: readonly LinkItem[] | 'all'): void {
    if (events === 'all') {
      this.#lookAtAll()
      return
    }
    for (const { ifindex, name } of events) this.#look(ifindex, name)
  }

  /** Call this when an endpoint begins or stops to wait for an interface of this name. */
  lookAt(name: string): void {
    const ifindex = this.#options.posix.ifIndex(name)
    if (ifindex > 0) this.#look(ifindex, name)
  }

  /** Call this when an endpoint leaves an interface. Returns true if the interface is now fenced. */
  takeOver(ifindex: number): boolean {
    const item = this.#options.linkEvents.list().find((each) => each.ifindex === ifindex)
    return item !== undefined && this.sideOf(item.name) !== undefined && this.#put(item)
  }

  /** Call this when an endpoint has taken the interface. */
  giveUp(ifindex: number): void {
    this.#fenced.delete(ifindex)
  }

  /** Returns the side at which packets arrive on an interface that is to be fenced, or undefined if it is not to be fenced. */
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

  /** Writes the entry before it attaches the programs, so that the programs always find the entry. */
  #put({ ifindex, name }: LinkItem): boolean {
    const { tc, posix, programs, endpoints } = this.#options
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
    const failure = refused ?? tc.attach(programs, ifindex, side) ?? markAttached(endpoints, key)
    if (failure !== undefined) {
      this.#failed.set(name, failure)
      return false
    }
    this.#failed.delete(name)
    this.#fenced.set(ifindex, name)
    return true
  }

  #remove(ifindex: number): void {
    const { tc, links, endpoints } = this.#options
    const key = { kind: 'interface', id: ifindex } as const
    this.#fenced.delete(ifindex)
    detach(tc, links, key)
    endpoints.delete(encodeHookKey(key))
  }
}
