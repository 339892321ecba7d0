// Clients that ask at a steady rate until `stop`, each from one UDP port; TCP connections that stay open or carry one query each; and the
// name server behind namegate. A query is asked once, or again after `retryMs`.

import { compiled } from './compiled.ts'
import { objectIn } from '../nodes/command.ts'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'

const CLIENTS = 8
const CONNECTIONS = 8
/** Clients that are never stopped end by themselves. */
const SECONDS_MAX = '900'
/** One of so many queries is for a name that was never asked. */
const NEW_EVERY = '50'
/** More than the 7 s that clients wait for outstanding queries. */
const END_MS = 30_000

export interface LoadOptions {
  readonly host: Host
  readonly server: string
  readonly udpRate: number
  readonly tcpRate: number
  /** Whether connections stay open; otherwise each carries one query. */
  readonly keepsConnections: boolean
  /** Clients ask again after this time without an answer; default: never. Over TCP only without `keepsConnections`. */
  readonly retryMs?: number
}

export interface LoadCount {
  readonly sent: number
  /** Answered without a refusal. */
  readonly answered: number
  /** Answered with a refusal. */
  readonly refused: number
  /** Connections that were closed with an answer outstanding. */
  readonly closed: number
  /** Connections without an answer, only over TCP without `keepsConnections`: refused or not opened, closed with the query outstanding, and
   *  with `retryMs` open without an answer for this time. */
  readonly unopened: number
  readonly ended: number
  readonly silent: number
  readonly slowestMs: number
  /** Queries that were asked again, and the highest number of repeats of one query. */
  readonly retried: number
  readonly mostRetries: number
}

export class SteadyLoad {
  readonly #programs = {
    dns: compiled('steady-dns'),
    tcp: compiled('steady-tcp'),
    connections: compiled('steady-connections'),
  }
  #udp: readonly LabProcess[] = []
  #tcp: readonly LabProcess[] = []

  /** A server of both transports that answers every name with one address. */
  async serve(host: Host, address: string): Promise<void> {
    const udp = host.start(this.#programs.dns, ['serve', address, '53', '0', '0'])
    const tcp = host.start(this.#programs.tcp, ['serve', address, '53'])
    for (const server of [udp, tcp]) await server.untilOutput(/^ready$/m)
  }

  begin(options: LoadOptions): void {
    const { host, server, udpRate, tcpRate, keepsConnections, retryMs } = options
    const share = String(Math.max(1, Math.round(udpRate / CLIENTS)))
    const retry = retryMs === undefined ? [] : [String(retryMs)]
    this.#udp = Array.from({ length: CLIENTS }, (_, i) => {
      const args = ['load', server, '53', share, SECONDS_MAX, `u${i}`, NEW_EVERY, ...retry]
      return host.start(this.#programs.dns, args)
    })
    const args = [server, '53', String(tcpRate), SECONDS_MAX, 't']
    const kept = ['load', ...args, String(CONNECTIONS)]
    this.#tcp = [
      keepsConnections
        ? host.start(this.#programs.tcp, kept)
        : host.start(this.#programs.connections, [...args, ...retry]),
    ]
  }

  /** Stops asking. Returns the results over UDP and over TCP. */
  async stop(): Promise<readonly [udp: LoadCount, tcp: LoadCount]> {
    for (const client of [...this.#udp, ...this.#tcp]) client.kill('SIGTERM')
    return [await count(this.#udp), await count(this.#tcp)]
  }
}

async function count(clients: readonly LabProcess[]): Promise<LoadCount> {
  const results = await Promise.all(
    clients.map(async (client) => {
      const ended = await client.ended(END_MS)
      if (ended === undefined || ended.stdout === '') {
        throw new Error(`${client.title}: no result: ${ended?.stderr ?? 'it still runs'}`)
      }
      return objectIn(ended.stdout)
    }),
  )
  const all = (field: string): readonly number[] => results.map((each) => Number(each[field] ?? 0))
  const sum = (field: string): number => all(field).reduce((total, each) => total + each, 0)
  return {
    sent: sum('sent'),
    answered: sum('noerror'),
    refused: sum('other') + sum('servfail'),
    closed: sum('closed'),
    unopened: sum('unopened'),
    ended: sum('ended'),
    silent: sum('silent'),
    slowestMs: Math.max(...all('max')) / 1000,
    retried: sum('retried'),
    mostRetries: Math.max(...all('mostRetries')),
  }
}
