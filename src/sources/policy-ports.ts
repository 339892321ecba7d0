// Policies with numbers for the names of ports, as the lists of endpoints and resources have them. A list is looked through
// once: the same one comes several times in one change, and may be very long.

import { PortResolver, portNamesOf, type PortName } from '../policy/named-ports.ts'
import type { Policy } from '../policy/rule.ts'

interface Named {
  readonly ports?: readonly PortName[]
}

type Lists = readonly (readonly PortName[])[]

export class PolicyPorts {
  readonly #resolver = new PortResolver()
  readonly #known = new WeakMap<readonly Named[], Lists>()

  resolve(policies: readonly Policy[], named: readonly (readonly Named[])[]): readonly Policy[] {
    const names = portNamesOf(named.flatMap((records) => this.#portsOf(records)))
    return this.#resolver.resolve(policies, names)
  }

  #portsOf(records: readonly Named[]): Lists {
    const known = this.#known.get(records)
    if (known !== undefined) return known
    const lists: (readonly PortName[])[] = []
    for (const { ports } of records) if (ports !== undefined) lists.push(ports)
    this.#known.set(records, lists)
    return lists
  }
}
