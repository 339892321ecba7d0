// A Recorder records what the command asks and reaches while it runs. Names and refused connections come from the ring of flows.
// Connections that were made come from the kernel's connection table. The names of each address come from the name cache. The number of
// records is bounded, and `lost` counts what is not recorded. `src/cli/exec/run.ts` calls `look` once a second
// (ten times with `--verbose`), and at the end of the run.

import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowDetails } from '../flows/record/flow-kinds.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import { formatAddress, type Family } from '../core/ip.ts'
import { formatProtocol, TCP, UDP } from '../core/protocol.ts'
import type { Flow } from '../native/netfilter/conntrack.ts'

export type NameVerdict = 'allowed' | 'denied' | 'audited' | 'failed'

/** A name that the command asked. `asked` counts the queries. */
export interface NameRecord {
  readonly name: string
  asked: number
  verdict: NameVerdict
  /** True if every query was for SRV records, which programs such as apt ask before they ask for addresses. */
  isService: boolean
}

/** A destination that the command reached or was refused. */
export interface ConnectionRecord {
  readonly address: string
  readonly protocol: string
  readonly port: number
  /** How many packets were refused or audited. Always 1 for `made`. */
  packets: number
  readonly verdict: 'made' | 'refused' | 'audited'
  /** Names whose answers contained the address. The set grows as more names are learned. */
  readonly names: ReadonlySet<string>
  /** True if the address is guarded: no answer can open it (names/guard.ts). */
  readonly isGuarded: boolean
}

/** The destination of a connection. */
interface Place {
  readonly family: Family
  /** 16 octets. */
  readonly address: Uint8Array
  readonly protocol: number
  readonly port: number
}

/** The bound for names, for addresses and for connections, each. */
const RECORDS_MAX = 10_000
/** A name keeps the strongest verdict of its queries. */
const STRENGTH: Readonly<Record<NameVerdict, number>> = {
  failed: 0,
  allowed: 1,
  audited: 2,
  denied: 3,
}
/** Loopback addresses. Connections to them stay inside the command's namespace. */
const OWN = /^(?:127\.|::1$)/
const DNS_PORT = 53
const SRV = 33

/** The records of one run. */
export class Recorder {
  readonly names = new Map<string, NameRecord>()
  readonly connections = new Map<string, ConnectionRecord>()
  /** How many observations were not recorded because of the bound, or because the ring of flows overwrote them. */
  lost = 0
  readonly #core: Pick<CoreState, 'names' | 'ipcache' | 'guard'>
  readonly #flows: FlowRing
  readonly #dump: (visit: (flow: Flow) => void) => number
  readonly #onRefused: (record: NameRecord | ConnectionRecord) => void
  readonly #namesOf = new Map<string, Set<string>>()
  /** Queries by name that audit let pass and whose end was not read yet. The end has a flow of its own, which does not count again. */
  readonly #unended = new Map<string, number>()
  #seen = 0

  constructor(options: {
    readonly core: Pick<CoreState, 'names' | 'ipcache' | 'guard'>
    readonly flows: FlowRing
    /** Lists the connection table of the command's network namespace. */
    readonly dump: (visit: (flow: Flow) => void) => number
    /** Called once for each name and connection that is refused, or would be refused without audit. */
    readonly onRefused?: (record: NameRecord | ConnectionRecord) => void
  }) {
    this.#core = options.core
    this.#flows = options.flows
    this.#dump = options.dump
    this.#onRefused = options.onRefused ?? (() => undefined)
  }

  /** Reads new flows and connections. */
  look(): void {
    this.#lookAtNames()
    const { count, oldest } = this.#flows
    if (oldest > this.#seen) this.lost += oldest - this.#seen
    for (let i = Math.max(this.#seen, oldest); i < count; i++) this.#takeFlow(this.#flows.get(i))
    this.#seen = count
    this.#dump((flow) => this.#takeMade(flow))
  }

  #takeFlow(flow: FlowDetails): void {
    switch (flow.kind) {
      case 'drop':
      case 'audit': {
        const family = flow.family === 4 ? 4 : 6
        const verdict = flow.kind === 'drop' ? 'refused' : 'audited'
        this.#takeConnection({ ...flow, family, address: flow.peer }, verdict)
        break
      }
      case 'denied':
      case 'not-ready':
        this.#takeName(flow, 'denied')
        break
      case 'audited':
        this.#takeName(flow, 'audited')
        break
      case 'answered':
        this.#takeName(flow, 'allowed')
        break
      case 'upstream-failed':
      case 'overloaded':
        this.#takeName(flow, 'failed')
        break
      case 'forwarded':
      case 'unknown-client':
      case 'interface-mismatch':
      case 'malformed':
      case 'policy-lost':
      case 'expired-use':
        break
    }
  }

  #takeName({ name, qtype }: FlowDetails, verdict: NameVerdict): void {
    if (name === undefined) return
    const isService = qtype === SRV
    const known = this.names.get(name)
    if (known === undefined && this.names.size === RECORDS_MAX) {
      this.lost++
      return
    }
    const record = known ?? { name, asked: 0, verdict, isService }
    this.names.set(name, record)
    if (verdict === 'audited' || !this.#endsAudited(name, verdict)) record.asked++
    if (verdict === 'audited') this.#unended.set(name, (this.#unended.get(name) ?? 0) + 1)
    record.isService &&= isService
    const isNews = known === undefined || STRENGTH[verdict] > STRENGTH[known.verdict]
    if (!isNews) return
    record.verdict = verdict
    if (verdict === 'denied' || verdict === 'audited') this.#onRefused(record)
  }

  /** Returns true if the flow is the end of a query that audit let pass. A refused query never was let pass. */
  #endsAudited(name: string, verdict: NameVerdict): boolean {
    const count = this.#unended.get(name) ?? 0
    if (count === 0 || verdict === 'denied') return false
    this.#unended.set(name, count - 1)
    return true
  }

  #takeMade({ family, protocol, original }: Flow): void {
    const { target: address, targetPort: port } = original
    const isOurs = OWN.test(formatAddress(family, address)) || port === DNS_PORT
    if (!isOurs && (protocol === TCP || protocol === UDP)) {
      this.#takeConnection({ family, address, protocol, port }, 'made')
    }
  }

  #takeConnection(place: Place, verdict: ConnectionRecord['verdict']): void {
    const { family, protocol, port } = place
    const address = formatAddress(family, place.address)
    const key = `${verdict} ${address} ${protocol} ${port}`
    const known = this.connections.get(key)
    if (known !== undefined) {
      if (verdict !== 'made') known.packets++
      return
    }
    if (this.connections.size === RECORDS_MAX) {
      this.lost++
      return
    }
    const names = this.#holdNames(address)
    const isGuarded = this.#core.guard.isGuarded(family, place.address, 0)
    const record: ConnectionRecord = {
      address,
      protocol: formatProtocol(protocol),
      port,
      packets: 1,
      verdict,
      names,
      isGuarded,
    }
    this.connections.set(key, record)
    if (verdict !== 'made') this.#onRefused(record)
  }

  #holdNames(address: string): Set<string> {
    const names = this.#namesOf.get(address) ?? new Set<string>()
    if (this.#namesOf.size < RECORDS_MAX) this.#namesOf.set(address, names)
    return names
  }

  /**
   * Records the names of all addresses. The name cache keeps a mapping for `--grace` after its TTL. If the TTL and the grace are shorter than
   * the time between two looks, a mapping is missed, and a connection is then recorded without its name.
   */
  #lookAtNames(): void {
    const { names: cache, ipcache } = this.#core
    const { names, mappings } = cache
    const { prefixes } = ipcache
    for (let row = 1; row <= names.slots.high; row++) {
      if (!names.isUsed(row)) continue
      const name = names.format(row)
      for (let m = names.firstMapping[row]!; m !== 0; m = mappings.nextOfName[m]!) {
        const prefix = mappings.prefix[m]!
        const octets = prefixes.octets.subarray(prefix * 16, prefix * 16 + 16)
        this.#holdNames(formatAddress(prefixes.family(prefix), octets)).add(name)
      }
    }
  }
}
