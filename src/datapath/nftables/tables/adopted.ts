// Adopted manages connections that are older than enforcement. `adopted4` and `adopted6` have the listed connections. `learned4`
// and `learned6` have connections that the packet path learns from segments. The kernel removes each element when its time is
// over, so the mirror does not have these elements.

import { endpointId, type EndpointId, type Generation } from '../../../core/ids.ts'
import type { Family } from '../../../core/ip.ts'
import type { AdoptedFlow, Adoption, FlowTuple } from '../../adoption.ts'
import { eachElement } from '../netlink/read-elements.ts'
import { pack, shortAt, wordAt } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Element } from './mirror.ts'
import type { Table } from './table.ts'

const FLOWS = ['adopted4', 'adopted6', 'learned4', 'learned6'] as const
const OF_ENDPOINT = [...FLOWS, 'learning', 'passing', 'neighbours'] as const
const ATTEMPTS = 4

export class Adopted {
  readonly #table: Table
  readonly #max: number
  /** By endpoint, the generation for which connections were adopted. */
  readonly #generations = new Map<EndpointId, number>()
  /** Adoptions for a generation that is not there yet. */
  readonly #waiting = new Map<EndpointId, Adoption>()
  #refused = 0

  constructor(options: { readonly table: Table; readonly max: number }) {
    this.#table = options.table
    this.#max = options.max
  }

  /** How many listed connections found no room so far. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Adopts the listed connections and returns how many it took. `current` is the endpoint's present generation, or 0 if there is
   * none. If `current` is another generation, the adoption waits for its own.
   */
  adopt(adoption: Adoption, current: number): number {
    const { endpoint, generation, passMs, learnMs, flows } = adoption
    if (current !== 0 && current !== generation) {
      this.#waiting.set(endpoint, adoption)
      return flows.length
    }
    this.#generations.set(endpoint, generation)
    const taken = this.#add(adoption)
    const key = pack(['mark'], [endpoint])
    this.#renew('passing', { key, timeoutMs: passMs })
    const isFull = taken < flows.length
    this.#renew('learning', { key, timeoutMs: isFull ? 0 : Math.min(learnMs, passMs) })
    this.#refused += flows.length - taken
    return taken
  }

  /** Call this when the endpoint has this generation. Removes connections that were adopted for another generation. */
  begin(id: EndpointId, generation: Generation): void {
    if ((this.#generations.get(id) ?? generation) !== generation) this.forget(id)
    const waiting = this.#waiting.get(id)
    if (waiting?.generation !== generation) return
    this.#waiting.delete(id)
    this.adopt(waiting, generation)
  }

  #add({ endpoint, passMs, flows }: Adoption): number {
    const known = this.#keys('adopted4').size + this.#keys('adopted6').size
    let room = Math.max(0, this.#max - known)
    let taken = 0
    for (const family of [4, 6] as const) {
      const name = `adopted${family}`
      const wanted = new Map<string, Element>()
      for (const flow of flows.filter((each) => each.family === family)) {
        const element = { key: keyOf(endpoint, flow), timeoutMs: passMs }
        wanted.set(text(element.key), element)
      }
      const there = this.#keys(name)
      const fresh = [...wanted].filter(([each]) => !there.has(each)).slice(0, room)
      room -= fresh.length
      const again = [...wanted].filter(([each]) => there.has(each))
      for (const [, element] of again) this.#table.applyTimed('delete', name, [element])
      const all = [...again, ...fresh].map(([, element]) => element)
      if (this.#table.applyTimed('add', name, all) === undefined) taken += all.length
    }
    return taken
  }

  list(generationOf: (id: EndpointId) => number): readonly AdoptedFlow[] {
    const found: AdoptedFlow[] = []
    for (const name of FLOWS) {
      const family: Family = name.endsWith('4') ? 4 : 6
      this.#each(name, ({ key, timeoutMs }) => {
        const endpoint = endpointId(wordAt(key, 0))
        const current = generationOf(endpoint)
        const generation = this.#generations.get(endpoint) ?? current
        if (current === 0 || current !== generation || (timeoutMs ?? 0) <= 0) return
        found.push({ ...flowOf(family, key), endpoint, leftMs: timeoutMs ?? 0 })
      })
    }
    return found
  }

  /** Removes everything of the endpoint's connections and neighbours. */
  forget(id: EndpointId): void {
    this.#generations.delete(id)
    for (const name of OF_ENDPOINT) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const mine: Element[] = []
        this.#each(name, (element) => {
          if (wordAt(element.key, 0) === id) mine.push({ key: element.key })
        })
        if (this.#table.applyTimed('delete', name, mine) === undefined) break
      }
    }
  }

  #renew(name: string, element: Element): void {
    this.#table.applyTimed('delete', name, [element])
    if ((element.timeoutMs ?? 0) > 0) this.#table.applyTimed('add', name, [element])
  }

  #keys(name: string): Set<string> {
    const keys = new Set<string>()
    this.#each(name, ({ key }) => keys.add(text(key)))
    return keys
  }

  #each(name: string, visit: (element: Element) => void): void {
    eachElement(this.#table, name, visit)
  }
}

function keyOf(endpoint: EndpointId, flow: FlowTuple): Uint8Array {
  const { protocol, local, localPort, peer, peerPort } = flow
  const fields = shapeOf(`adopted${flow.family}`).key
  return pack(fields, [endpoint, protocol, local, localPort, peer, peerPort])
}

function flowOf(family: Family, key: Uint8Array): FlowTuple {
  const width = family === 4 ? 4 : 16
  const address = (at: number): Uint8Array => {
    const octets = new Uint8Array(16)
    octets.set(key.subarray(at, at + width))
    return octets
  }
  return {
    family,
    protocol: key[4]!,
    local: address(8),
    localPort: shortAt(key, 8 + width),
    peer: address(12 + width),
    peerPort: shortAt(key, 12 + 2 * width),
  }
}

function text(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}
