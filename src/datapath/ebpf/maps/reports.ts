// This file reads what the eBPF datapath reports: drops and audits (`struct event` in programs/layout.h) from the ring buffer,
// and counters. On each CPU the programs write a bounded number of records per second, and they never wait. One read takes at
// most `limit` records, so a flood of drops cannot block the daemon.

import { atMonotonic } from '../../../core/clock.ts'
import { endpointId, identity, ruleId } from '../../../core/ids.ts'
import type { Bpf } from '../../../native/native.ts'
import type { DatapathEvent, DropReason } from '../../entries.ts'
import { encodeNumber, readLong, readNumber, STAT_NAMES } from './layout.ts'
import type { DatapathCounters } from '../../abilities.ts'
import type { KernelMaps } from './kernel-map.ts'

/** The octets of a `struct event`. */
const RECORD = 56
const MAX_RECORDS = 1024
const REASONS: readonly DropReason[] = ['policy', 'source', 'malformed', 'fragment']
const AUDIT = 2

export class Events {
  readonly #bpf: Bpf
  readonly #ring: object
  readonly #records = new Uint8Array(RECORD * MAX_RECORDS)

  constructor(bpf: Bpf, fd: number) {
    this.#bpf = bpf
    const ring = bpf.ringOpen(fd, RECORD)
    if (typeof ring === 'number') throw new Error(`Cannot read ng_events: errno ${-ring}`)
    this.#ring = ring
  }

  drain(limit: number, visit: (event: DatapathEvent) => void): void {
    const booted = this.#bpf.booted() * 1000
    let left = limit
    while (left > 0) {
      const room = Math.min(left, MAX_RECORDS)
      const count = this.#bpf.ringDrain(this.#ring, this.#records.subarray(0, room * RECORD))
      for (let i = 0; i < count; i++) visit(decode(this.#records, i * RECORD, booted))
      if (count < room) return
      left -= count
    }
  }
}

/** `booted` is the present time of the records' clock, in milliseconds. */
function decode(octets: Uint8Array, at: number, booted: number): DatapathEvent {
  return {
    seen: atMonotonic(readLong(octets, at) / 1e6),
    age: Math.max(0, booted - readLong(octets, at + 8) / 1e6),
    endpoint: endpointId(readNumber(octets, at + 16)),
    identity: identity(readNumber(octets, at + 20)),
    rule: ruleId(readNumber(octets, at + 24)),
    verdict: octets[at + 28] === AUDIT ? 'audit' : 'deny',
    reason: REASONS[octets[at + 29]! - 1] ?? 'policy',
    family: octets[at + 30] === 6 ? 6 : 4,
    protocol: octets[at + 31]!,
    port: (octets[at + 32]! << 8) | octets[at + 33]!,
    localPort: (octets[at + 34]! << 8) | octets[at + 35]!,
    peer: octets.slice(at + 36, at + 52),
    opening: readNumber(octets, at + 52) !== 0,
  }
}

export function readCounters(bpf: Bpf, maps: KernelMaps): DatapathCounters {
  const counters: Record<string, number> = {}
  const cpus = bpf.possibleCpus()
  const values = new Uint8Array(8 * cpus)
  STAT_NAMES.forEach((name, index) => {
    let sum = 0
    if (bpf.lookup(maps.ng_stats.fd, encodeNumber(index), values) === 0) {
      for (let cpu = 0; cpu < cpus; cpu++) sum += readLong(values, cpu * 8)
    }
    counters[name] = sum
  })
  for (const map of Object.values(maps)) {
    const name = map.name === 'ng_hosts' ? 'ng_ipcache' : map.name
    const counter = `map_writes_${name.slice('ng_'.length)}`
    counters[counter] = (counters[counter] ?? 0) + map.writes
  }
  return counters
}
