// Counters of verdicts and drops by name, with the names of the eBPF adapter.

import type { DatapathCounters } from '../../../../src/datapath/abilities.ts'

const NAMES = [
  'verdict_allow',
  'verdict_reply',
  'verdict_listener',
  'verdict_neighbour',
  'verdict_audit',
  'verdict_not_enforcing',
  'verdict_bypass',
  'drop_policy',
  'drop_source',
  'drop_malformed',
  'drop_fragment',
  'drop_no_endpoint',
  'connections_over_limit',
  'events_lost',
  'verdict_intercepted',
  'verdict_adopted',
  'adopted_table_full',
] as const

export type CounterName = (typeof NAMES)[number]

export class Counters {
  readonly #values = new Map<CounterName, number>(NAMES.map((name) => [name, 0]))

  add(name: CounterName): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + 1)
  }

  all(): DatapathCounters {
    return Object.fromEntries(this.#values)
  }
}
