// Counters of the kernel's rules (named counters of the table) and of our own writes. A table that is made anew begins at zero, so
// what the one before had counted is added.

import type { DatapathCounters } from '../abilities.ts'
import type { Taken } from './commit.ts'
import { COUNTERS, TABLE } from './rules/layout.ts'
import { FAMILY_INET, type Message } from './netlink/message.ts'
import type { Table } from './tables/table.ts'

const GET_OBJECT = 19
const NAME = 2
const DATA = 4
const PACKETS = 2

export class Counters {
  readonly #table: Table
  readonly #base = new Map<string, number>()
  readonly #last = new Map<string, number>()
  #writes = { policy: 0, prefixes: 0, endpoints: 0 }

  constructor(table: Table) {
    this.#table = table
  }

  add({ counts }: Taken): void {
    this.#writes.policy += counts.policy
    this.#writes.prefixes += counts.prefixes
    this.#writes.endpoints += counts.endpoints
  }

  read(): DatapathCounters {
    this.#readKernel()
    const kernel = COUNTERS.map((name) => {
      return [name, (this.#base.get(name) ?? 0) + (this.#last.get(name) ?? 0)] as const
    })
    return {
      ...Object.fromEntries(kernel),
      drop_fragment: 0,
      connections_over_limit: 0,
      map_writes_ipcache: this.#writes.prefixes,
      map_writes_policy: this.#writes.policy,
      map_writes_endpoints: this.#writes.endpoints,
      table_repairs: this.#table.repairs,
    }
  }

  #readKernel(): void {
    const { socket, message } = this.#table
    const request = (to: Message, flags: number): void => {
      to.begin(GET_OBJECT, flags, FAMILY_INET)
      to.text(1, TABLE)
      to.end()
    }
    socket.list(request, message, (reader, from, end) => {
      let [name, packets] = ['', 0]
      reader.attributes(from, end, (type, at, to) => {
        if (type === NAME) name = reader.text(at, to)
        if (type !== DATA) return
        const value = reader.find(at, to, PACKETS)
        if (value >= 0) packets = reader.u64(value)
      })
      const last = this.#last.get(name) ?? 0
      if (packets < last) this.#base.set(name, (this.#base.get(name) ?? 0) + last)
      this.#last.set(name, packets)
    })
  }
}
