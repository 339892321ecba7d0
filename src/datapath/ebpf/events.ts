// The ring buffer of drops and audits. The kernel side writes at most a bounded number a second for each
// CPU and never waits; here at most `limit` are read at a time, so that no flood of drops holds the daemon.

import { endpointId, identity, ruleId } from '../../core/ids.ts'
import type { Bpf } from '../../native/native.ts'
import type { DatapathEvent, DropReason } from '../datapath.ts'
import { readNumber } from './layout.ts'

const RECORD = 36
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
    let left = limit
    while (left > 0) {
      const room = Math.min(left, MAX_RECORDS)
      const count = this.#bpf.ringDrain(this.#ring, this.#records.subarray(0, room * RECORD))
      for (let i = 0; i < count; i++) visit(decode(this.#records, i * RECORD))
      if (count < room) return
      left -= count
    }
  }
}

function decode(octets: Uint8Array, at: number): DatapathEvent {
  return {
    endpoint: endpointId(readNumber(octets, at)),
    identity: identity(readNumber(octets, at + 4)),
    rule: ruleId(readNumber(octets, at + 8)),
    verdict: octets[at + 12] === AUDIT ? 'audit' : 'deny',
    reason: REASONS[octets[at + 13]! - 1] ?? 'policy',
    family: octets[at + 14] === 6 ? 6 : 4,
    protocol: octets[at + 15]!,
    port: (octets[at + 16]! << 8) | octets[at + 17]!,
    peer: octets.slice(at + 20, at + 36),
  }
}
