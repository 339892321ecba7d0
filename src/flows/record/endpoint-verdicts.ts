// EndpointVerdicts counts flows by endpoint and verdict. Each counted endpoint has one row of a typed array. At most SERIES_MAX endpoints
// have rows, because Prometheus stores each row as several series. The other endpoints share row 0. `keep` gives rows
// to new endpoints and takes the rows of endpoints that are gone. Counting a flow allocates nothing.

import { FLOW_KINDS, type FlowKind } from './flow-kinds.ts'

/** How many endpoints have counts of their own. */
export const SERIES_MAX = 1000

/** Verdicts of DNS queries, then of packets. */
export const DNS_VERDICTS = ['answered', 'denied', 'audited', 'failed', 'refused'] as const
export const PACKET_VERDICTS = ['dropped', 'audited'] as const

const COLUMNS = DNS_VERDICTS.length + PACKET_VERDICTS.length
const PACKETS_AT = DNS_VERDICTS.length
const UNCOUNTED = -1
/** The row of all endpoints without a row of their own. */
const SHARED = 0

/** The column that counts each kind of flow. */
const COLUMN: Readonly<Record<FlowKind, number>> = {
  forwarded: UNCOUNTED,
  answered: DNS_VERDICTS.indexOf('answered'),
  denied: DNS_VERDICTS.indexOf('denied'),
  audited: DNS_VERDICTS.indexOf('audited'),
  'unknown-client': UNCOUNTED,
  'interface-mismatch': DNS_VERDICTS.indexOf('refused'),
  'not-ready': DNS_VERDICTS.indexOf('refused'),
  malformed: DNS_VERDICTS.indexOf('refused'),
  overloaded: DNS_VERDICTS.indexOf('refused'),
  'upstream-failed': DNS_VERDICTS.indexOf('failed'),
  drop: PACKETS_AT + PACKET_VERDICTS.indexOf('dropped'),
  audit: PACKETS_AT + PACKET_VERDICTS.indexOf('audited'),
  'policy-lost': UNCOUNTED,
  'expired-use': UNCOUNTED,
}

/** An endpoint with its counts. `name` is undefined for the endpoints that share counts. */
export interface EndpointCounts {
  readonly name: string | undefined
  /** In the order of DNS_VERDICTS. */
  readonly dns: readonly number[]
  /** In the order of PACKET_VERDICTS. */
  readonly packets: readonly number[]
}

export class EndpointVerdicts {
  readonly #columns = Int8Array.from(FLOW_KINDS, (kind) => COLUMN[kind])
  readonly #counts = new Float64Array((SERIES_MAX + 1) * COLUMNS)
  /** The counts of rows that were taken. */
  readonly #gone = new Float64Array(COLUMNS)
  /** The row of each endpoint number. */
  readonly #rows = new Map<number, number>()
  readonly #names = new Map<number, string>()
  readonly #free: number[] = []
  #fresh = SHARED + 1
  #leftOut = 0

  /** The number of endpoints that shared row 0 in the last `keep`. */
  get leftOut(): number {
    return this.#leftOut
  }

  /** Counts one flow. `kind`: index into FLOW_KINDS. `endpoint`: 0 if no endpoint is known, and the flow is not counted. */
  add(kind: number, endpoint: number): void {
    const column = this.#columns[kind]!
    if (column < 0 || endpoint === 0) return
    const row = this.#rows.get(endpoint) ?? SHARED
    this.#counts[row * COLUMNS + column]!++
  }

  /** Gives a row to each endpoint while rows are left, and takes the rows of all other endpoints. Call it when endpoints changed. */
  keep(endpoints: Iterable<{ readonly id: number; readonly name: string }>): void {
    const known = new Map<number, string>()
    for (const { id, name } of endpoints) known.set(id, name)
    for (const [id, row] of this.#rows) if (!known.has(id)) this.#take(id, row)
    this.#leftOut = 0
    for (const [id, name] of known) {
      if (!this.#rows.has(id) && !this.#give(id)) this.#leftOut++
      else this.#names.set(id, name)
    }
  }

  /** The counts of each endpoint with a row, then those of all others together. */
  *read(): Iterable<EndpointCounts> {
    for (const [id, row] of this.#rows) yield this.#read(this.#names.get(id), row)
    yield this.#read(undefined, SHARED)
  }

  /** The counts of all endpoints since the start, with those that are gone. */
  total(): EndpointCounts {
    const counts = [...this.#gone]
    for (const row of [SHARED, ...this.#rows.values()]) {
      for (let i = 0; i < COLUMNS; i++) counts[i]! += this.#counts[row * COLUMNS + i]!
    }
    return toCounts(undefined, counts)
  }

  #read(name: string | undefined, row: number): EndpointCounts {
    const at = row * COLUMNS
    return toCounts(name, [...this.#counts.subarray(at, at + COLUMNS)])
  }

  #give(id: number): boolean {
    const row = this.#free.pop() ?? (this.#fresh <= SERIES_MAX ? this.#fresh++ : SHARED)
    if (row === SHARED) return false
    this.#rows.set(id, row)
    return true
  }

  #take(id: number, row: number): void {
    this.#rows.delete(id)
    this.#names.delete(id)
    this.#free.push(row)
    for (let i = 0; i < COLUMNS; i++) this.#gone[i]! += this.#counts[row * COLUMNS + i]!
    this.#counts.fill(0, row * COLUMNS, (row + 1) * COLUMNS)
  }
}

function toCounts(name: string | undefined, counts: readonly number[]): EndpointCounts {
  return { name, dns: counts.slice(0, PACKETS_AT), packets: counts.slice(PACKETS_AT) }
}
