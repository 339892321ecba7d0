// Needs collects what endpoints with the same labels need: the names that they asked, their connections that no rule allowed, and what policy
// denied them. Each name and connection is kept once, with its evidence. The result does not depend on the order in which flows are added.

import { Evidence, type Sighting } from './evidence.ts'

/** The place of a connection. */
export interface Place {
  readonly address: string
  /** `TCP`, `UDP`, `SCTP`, or the text of another protocol as the flow has it. */
  readonly protocol: string
  readonly port: number
  /** Names whose answers contained the address. */
  readonly names: readonly string[]
}

/** A destination to which endpoints connected, with what was known about the address. */
export interface Connection extends Place {
  /** Labels of the peer, `source:key=value`. */
  readonly labels: readonly string[]
  /** True if a deny rule would have denied the connection, because then no other rule can allow it. */
  readonly isForbidden: boolean
}

export interface Reached extends Connection {
  readonly evidence: Evidence
}

/** Flows that policy denied, all for one name or place. */
export interface DeniedFlow {
  /** The name, or the place of the packets. */
  readonly what: string
  /** The name that was asked. Undefined for packets. */
  readonly name: string | undefined
  /** Undefined for a question, and for packets whose place is unknown. */
  readonly place: Place | undefined
  count: number
  /** The time of the last flow. Empty when unknown. */
  last: string
  readonly endpoints: Set<string>
}

export class Needs {
  /** Labels of the endpoints, sorted. */
  readonly labels: readonly string[]
  readonly asked = new Map<string, Evidence>()
  /** By `what`. */
  readonly denied = new Map<string, DeniedFlow>()
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

  addDenied({
    endpoint,
    ...line
  }: Omit<DeniedFlow, 'endpoints'> & { readonly endpoint: string | undefined }): void {
    const { what, count, last } = line
    const none = { ...line, count: 0, endpoints: new Set<string>() }
    const denied = this.denied.get(what) ?? none
    denied.count += count
    if (last > denied.last) denied.last = last
    if (endpoint !== undefined) denied.endpoints.add(endpoint)
    this.denied.set(what, denied)
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
