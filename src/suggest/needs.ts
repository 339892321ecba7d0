// What endpoints with the same labels did: names that they asked, and connections that nothing allowed. Each thing once, with what
// tells of it. Filled flow by flow, in any order.

import { Evidence, type Sighting } from './evidence.ts'

export interface Connection {
  readonly address: string
  /** `TCP`, `UDP`, `SCTP`; others as they are. */
  readonly protocol: string
  readonly port: number
  /** Names that the address was answered for. */
  readonly names: readonly string[]
  /** Labels of the peer, `source:key=value`. */
  readonly labels: readonly string[]
  /** A deny rule would have denied it, which no other rule can allow. */
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
