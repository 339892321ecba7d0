// May this query be forwarded, and may its answer teach: policy on the name and the transport, and where the client chose the server
// (`upstreams.original-destination`) policy on the server and trust in it (docs/spec/semantics 2). No state of its own.

import type { EndpointId } from '../../core/ids.ts'
import { TCP, UDP, type DnsProtocol } from '../../core/protocol.ts'
import {
  MAY_ASK,
  NAME_DENIED,
  SERVER_DENIED,
  type DnsVerdicts,
} from '../../enforcement/dns-verdicts.ts'
import type { ServerIdentity } from '../../enforcement/server-identity.ts'
import type { AskedServer, AskedServers } from '../upstream/asked-servers.ts'
import { OF_OURS, OVER_TCP, type ClientColumns } from '../messages/client-columns.ts'

/** Values of `judge` besides those of DnsVerdicts. The server isn't trusted, whatever policy says. */
export const SERVER_UNTRUSTED = 3
/** Policy allows it, and `sources.then: deny` refuses every name now. */
export const SOURCES_SILENT = 5

/** What a flow calls the reason of a verdict. */
export function reasonOf(verdict: number): string {
  if (verdict === SOURCES_SILENT) return 'sources-silent'
  return verdict === SERVER_DENIED || verdict === SERVER_UNTRUSTED ? 'server' : ''
}

export interface JudgeOptions {
  readonly verdicts: DnsVerdicts
  /** Whether no name may be asked, whatever policy says (`sources.then: deny`). Absent: never. */
  readonly isClosed?: (() => boolean) | undefined
  /** Where clients choose the server. */
  readonly asked?:
    { readonly servers: AskedServers; readonly identities: ServerIdentity } | undefined
}

export class Judge {
  readonly counters = {
    /** Asked a server that policy doesn't admit, or that isn't trusted. */
    serverDenied: 0,
    serverUntrusted: 0,
  }
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Number of what denied the question that was judged last by policy, or would have (DnsVerdicts). */
  get deniedBy(): number {
    return this.#options.verdicts.deniedBy
  }

  /** MAY_ASK, AUDITED, NAME_DENIED, SERVER_DENIED, SERVER_UNTRUSTED or SOURCES_SILENT for the lower-case wire name asked in a row. */
  judge(endpoint: EndpointId, clients: ClientColumns, row: number, wire: Uint8Array): number {
    const { verdicts, asked } = this.#options
    const server = this.#serverOf(clients, row)
    if (server === undefined || asked === undefined) {
      return this.#unlessClosed(this.#ofPool(endpoint, clients, row, wire))
    }
    if (this.isUntrusted(clients, row)) return SERVER_UNTRUSTED
    const { identities } = asked
    identities.look(clients.families[row] === 4 ? 4 : 6, clients.askedAddresses, row * 16)
    const { port } = server.address
    const protocol = protocolOf(clients, row)
    const verdict = verdicts.judgeAt(endpoint, identities, port, protocol, wire, 0)
    if (verdict === SERVER_DENIED) this.counters.serverDenied++
    return this.#unlessClosed(verdict)
  }

  /** A question of ours that names no protocol (prewarm.ts) may be asked over either. */
  #ofPool(endpoint: EndpointId, clients: ClientColumns, row: number, wire: Uint8Array): number {
    const { verdicts } = this.#options
    const verdict = verdicts.judge(endpoint, protocolOf(clients, row), wire, 0)
    const isOfEither = clients.transports[row] === OF_OURS && clients.ports[row] === 0
    return isOfEither && verdict === NAME_DENIED ? verdicts.judge(endpoint, TCP, wire, 0) : verdict
  }

  #unlessClosed(verdict: number): number {
    return verdict === MAY_ASK && this.#options.isClosed?.() === true ? SOURCES_SILENT : verdict
  }

  /** Whether the server that a row's client asked is refused to everybody; counted. */
  isUntrusted(clients: ClientColumns, row: number): boolean {
    const server = this.#serverOf(clients, row)
    if (server === undefined || this.#options.asked?.servers.isRefused(server) !== true)
      return false
    this.counters.serverUntrusted++
    return true
  }

  /** Whether answers of the server that a row's client asked teach addresses. */
  mayTeach(clients: ClientColumns, row: number): boolean {
    return this.#serverOf(clients, row)?.kind !== 'untrusted'
  }

  /** The server that the client chose; undefined when that is left to the pool. */
  #serverOf(clients: ClientColumns, row: number): AskedServer | undefined {
    const server = this.#options.asked?.servers.of(clients, row)
    return server === undefined || server.kind === 'pool' ? undefined : server
  }
}

/** The protocol of a query; of a question of ours (OF_OURS) the one that stands in the place of its port, else UDP. */
function protocolOf({ transports, ports }: ClientColumns, row: number): DnsProtocol {
  const isTcp = transports[row] === OF_OURS ? ports[row] === TCP : transports[row] === OVER_TCP
  return isTcp ? TCP : UDP
}
