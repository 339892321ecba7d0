// The configured servers and which one to ask first: the one that answered last stays first until it fails and
// another one answers ("sticky"). The attempts of one query go round from there, so they reach two
// servers or more where there are (SEMANTICS 6). Health probes are not here.

import type { Family } from '../core/ip.ts'

export interface ServerAddress {
  readonly family: Family
  /** Numeric, without brackets. */
  readonly address: string
  /** 1..65535. */
  readonly port: number
}

export class ServerPool {
  readonly servers: readonly ServerAddress[]
  /** Attempts of each server since its last answer that ended without one. */
  readonly failures: Uint32Array
  readonly counters = {
    /** Times that another server became the first. */
    failovers: 0,
  }
  #first = 0

  constructor(servers: readonly ServerAddress[]) {
    this.servers = servers
    this.failures = new Uint32Array(servers.length)
  }

  /** The server that a new query asks first. */
  get first(): number {
    return this.#first
  }

  /** The server for attempt 0.. of a query that began at `first`. */
  forAttempt(first: number, attempt: number): number {
    return (first + attempt) % this.servers.length
  }

  answered(server: number): void {
    this.failures[server] = 0
    if (server === this.#first || this.failures[this.#first] === 0) return
    this.#first = server
    this.counters.failovers++
  }

  failed(server: number): void {
    this.failures[server]!++
  }
}
