// The clients' side: one query for each case, spoiled or not, over a socket that the case chooses, and a check of each reply.

import type { Daemon } from '../../../src/daemon/daemon.ts'
import { readQuery } from '../../support/models/query-oracle.ts'
import type { Random } from '../../support/models/random.ts'
import { freshName, mkQuery, randomOf, spoilQuery } from './cases.ts'
import type { Check } from './check.ts'
import { fateOf } from './expected.ts'
import { idOf, transportOf, type Client, type Ledger, type Pending } from './ledger.ts'
import { forget } from './readback.ts'
import { TcpAsker, UdpAsker } from './sockets.ts'
import type { Tally } from './tally.ts'
import type { Who } from './world.ts'

/** So many of 100 cases are spoiled queries. */
const SPOILED_PERCENT = 40
/** The server never answers one of so many queries. */
const SILENT_EVERY = 4000
/** The first suffixes. Both endpoints can ask their names. */
const COMMON_SUFFIXES = 5

const UDP: readonly Who[] = ['open', 'open', 'open', 'open', 'open', 'walled', 'walled', 'nobody']
const TCP: readonly Who[] = ['open', 'open', 'walled', 'nobody']

export interface AskingOptions {
  readonly seed: number
  readonly daemon: Daemon
  /** The port of the daemon's listener. */
  readonly port: number
  readonly ledger: Ledger
  readonly tally: Tally
  readonly check: Check
  readonly onFault: (fault: string, pending: Pending | undefined, octets: Uint8Array) => void
  readonly onSend: (what: string, octets: Uint8Array) => void
}

export class Asking {
  readonly #to: AskingOptions
  readonly #udp: readonly UdpAsker[]
  readonly #tcp: readonly TcpAsker[]

  constructor(options: AskingOptions) {
    this.#to = options
    this.#udp = UDP.map((who) => new UdpAsker(who, options.port))
    this.#tcp = TCP.map((who) => new TcpAsker(who, options.port))
  }

  async start(): Promise<void> {
    const onReply = (client: Client, octets: Uint8Array): void => this.#take(client, octets)
    for (const client of this.#udp) await client.start(onReply)
    for (const client of this.#tcp) {
      client.start(onReply)
      client.onLost = () =>
        this.#to.onFault('a connection with queries on it was closed', undefined, new Uint8Array(0))
    }
  }

  stop(): void {
    for (const client of [...this.#udp, ...this.#tcp]) client.stop()
  }

  /** Sends the query of case `number`. */
  ask(number: number): void {
    const { seed, ledger, tally, daemon, onSend } = this.#to
    const random = randomOf(seed, number)
    const spoiled = random.below(100) < SPOILED_PERCENT
    const client = this.#pick(random, spoiled)
    const labels = freshName(random, number, spoiled ? undefined : COMMON_SUFFIXES)
    const laid = mkQuery(random, labels)
    const query = spoiled ? spoilQuery(random, laid) : laid.octets
    giveFreeId(query, client)
    const read = readQuery(query)
    const fate = fateOf(query, read, client.who, client.overTcp)
    // A spoiled name can be that of another query. Then it would be unclear which of them taught.
    if (read.sound && ledger.hasName(read.labels)) return
    if (spoiled) tally.packets.query++
    else tally.plain.queries++
    if (client.overTcp) tally.overTcp.queries++
    onSend(`query over ${transportOf(client)} from ${client.who}`, query)
    if (fate.kind === 'silent') {
      tally.count('no reply')
    } else {
      const silent = random.oneIn(SILENT_EVERY)
      const tick = daemon.core.names.tick()
      const { hangUps } = ledger
      const begun = performance.now()
      const before = {
        sent: 0,
        accepted: undefined,
        owesRepeat: false,
        waits: [],
        history: [],
        begun,
      }
      ledger.add({
        ...{ number, random, query, read, client, fate, hangUps, tick, silent },
        ...before,
      })
    }
    client.send(query)
  }

  /** Leaves connections that have carried enough queries. */
  endTurn(): void {
    for (const client of this.#tcp) client.renew()
  }

  /** Plain queries come from endpoints, sometimes over TCP. */
  #pick(random: Random, spoiled: boolean): Client {
    const clients: readonly Client[] = random.oneIn(6) ? this.#tcp : this.#udp
    return random.pick(spoiled ? clients : clients.filter(({ who }) => who !== 'nobody'))
  }

  #take(client: Client, reply: Uint8Array): void {
    const { ledger, check, daemon, onFault } = this.#to
    const pending = reply.length < 2 ? undefined : client.waiting.get(idOf(reply))
    if (pending === undefined) {
      onFault('a reply to no waiting query', undefined, reply)
      return
    }
    ledger.remove(pending)
    const fault = check.faultOf(pending, reply)
    if (fault !== undefined) onFault(fault, pending, reply)
    if (pending.fate.kind !== 'forwarded') return
    forget(daemon, pending.read.labels)
    // Commits at once: other names have the same addresses, and are checked next.
    daemon.core.committer.commit()
  }
}

/** Gives the query an id without a waiting query of its client. */
function giveFreeId(query: Uint8Array, client: Client): void {
  if (query.length < 2) return
  let id = idOf(query)
  while (client.waiting.has(id)) id = (id + 1) & 0xffff
  query.set([id >> 8, id & 255])
}
