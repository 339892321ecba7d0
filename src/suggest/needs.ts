// Needs collects what endpoints with the same labels need: the names that they asked, and their connections that no rule allowed. Each name
// and connection is kept once, with its evidence. The result does not depend on the order in which flows are added.

import { Evidence, type Sighting } from './evidence.ts'

/** A destination to which endpoints connected, with what was known about the address. */
export interface Connection {
  readonly address: string
  /** `TCP`, `UDP`, `SCTP`, or the text of another protocol as the flow has it. */
  readonly protocol: string
  readonly port: number
  /** Names whose answers contained the address. */
  readonly names: readonly string[]
  /** Labels of the peer, `source:key=value`. */
  readonly labels: readonly string[]
  /** True if a deny rule would have denied the connection, because then no other rule can allow it. */
  readonly isForbidden: boolean
}

export interface Reached extends Connection {
  readonly evidence: Evidence
}

export class Needs {
  /** Labels of the endpoints, sorted. */
  readonly labels: readonly string[]
  readonly asked = new Map<string, Evidence>()
  readonly #reached = new Map<string, Reached>()

  constructor(labels: readonly string[]) {
    this.labels = labels
  }

  get reached(): Iterable<Reached> {
    return this.#reached.values()
  }

  addAsked(name: string, sighting: Sighting): void {
    const evidence = this.asked.get(name) ?? new Evidence()
    evidence.add(sighting)
    this.asked.set(name, evidence)
  }

  addReached(connection: Connection, sighting: Sighting): void {
    const names = connection.names.toSorted()
    const labels = connection.labels.toSorted()
    const { address, protocol, port, isForbidden } = connection
    const key = JSON.stringify([address, protocol, port, names, labels, isForbidden])
    const known = this.#reached.get(key)
    const evidence = known?.evidence ?? new Evidence()
    evidence.add(sighting)
    if (known === undefined) {
      this.#reached.set(key, { address, protocol, port, names, labels, isForbidden, evidence })
    }
  }
}
