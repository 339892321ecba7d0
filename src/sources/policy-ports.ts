// Replaces the names of ports in policies by the numbers that endpoints and resources give these names. Each list is read once, because one
// change gives the same long list several times. Most lists name no port.

import { RunningSum } from '../core/tables/list-difference.ts'
import {
  PortResolver,
  portNamesOf,
  type PortName,
  type PortNames,
} from '../policy/compile/named-ports.ts'
import type { Policy } from '../policy/rule.ts'

interface Named {
  readonly ports?: readonly PortName[]
}

type Lists = readonly (readonly Named[])[]

export class PolicyPorts {
  readonly #resolver = new PortResolver()
  readonly #known = new WeakMap<readonly Named[], readonly (readonly PortName[])[]>()
  /** How many records of each list name ports. */
  readonly #naming: RunningSum<Named>[] = []
  #lists: Lists = []
  #names: PortNames = new Map()

  resolve(policies: readonly Policy[], named: Lists): readonly Policy[] {
    if (named.length !== this.#lists.length || named.some((list, i) => list !== this.#lists[i])) {
      this.#lists = named
      const names = portNamesOf(named.flatMap((records, i) => this.#portsOf(records, i)))
      if (!sameNames(names, this.#names)) this.#names = names
    }
    return this.#resolver.resolve(policies, this.#names)
  }

  #portsOf(records: readonly Named[], place: number): readonly (readonly PortName[])[] {
    const naming = (this.#naming[place] ??= new RunningSum(({ ports }) => (ports ? 1 : 0)))
    if (naming.over(records) === 0) return []
    const known = this.#known.get(records)
    if (known !== undefined) return known
    const lists: (readonly PortName[])[] = []
    for (const { ports } of records) if (ports !== undefined) lists.push(ports)
    this.#known.set(records, lists)
    return lists
  }
}

function sameNames(a: PortNames, b: PortNames): boolean {
  if (a.size !== b.size) return false
  for (const [name, ports] of a) {
    const others = b.get(name)
    if (others?.size !== ports.size) return false
    for (const port of ports) if (!others.has(port)) return false
  }
  return true
}
