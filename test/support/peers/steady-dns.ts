// Load and servers of steady-dns.c in a lab: pods that ask at a steady rate and never ask twice, and name servers that can be stopped and
// killed. For the tests and the measurement of failover.

import { execFileSync } from 'node:child_process'
import { compiled } from './compiled.ts'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'

/** The results of the queries of all clients; times in milliseconds. */
export interface LoadResult {
  readonly sent: number
  readonly noerror: number
  readonly servfail: number
  readonly other: number
  /** Sent and never answered. */
  readonly lost: number
  readonly maxMs: number
  /** Times of the slowest client. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** Queries that took longer than 20 ms. */
  readonly slow: number
  /** When the last slow query was sent, in milliseconds of `monotonicMs`; 0 without one. */
  readonly lastSlowMs: number
}

/** The reason why the program cannot be built, or undefined. */
export function canUseSteadyDns(): string | undefined {
  try {
    execFileSync('which', ['gcc'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'gcc is not installed'
  }
}

/** The clock of `lastSlowMs`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}

export class SteadyDns {
  readonly #program = compiled('steady-dns')

  /** Starts a server. With `rcode` 0 it answers with an address. */
  async serve(
    host: Host,
    address: string,
    options: { readonly rcode?: number; readonly delayMs?: number } = {},
  ): Promise<LabProcess> {
    const { rcode = 0, delayMs = 0 } = options
    const server = host.start(this.#program, ['serve', address, '53', `${rcode}`, `${delayMs}`])
    await server.untilOutput(/^ready$/m)
    return server
  }

  /** Asks `rate` queries a second in all, in equal shares by all clients, each to its server. A query without an answer after `retryMs` is
   *  asked again. */
  async load(
    clients: readonly { readonly host: Host; readonly server: string }[],
    rate: number,
    seconds: number,
    retryMs?: number,
  ): Promise<LoadResult> {
    const again = retryMs === undefined ? [] : ['1', `${retryMs}`]
    const share = `${Math.round(rate / clients.length)}`
    const limitMs = seconds * 1000 + 20_000
    const outputs = await Promise.all(
      clients.map(async ({ host, server }, i) => {
        const args = ['load', server, '53', share, `${seconds}`, `c${i}`, ...again]
        return await host.run(this.#program, args, { limitMs })
      }),
    )
    return unite(outputs.map(({ stdout, stderr }) => readResult(stdout, stderr)))
  }
}

const FIELDS = 'sent noerror servfail other slow lastSlowMs p50 p99 max'.split(' ')

function readResult(stdout: string, stderr: string): Readonly<Record<string, number>> {
  const parsed: unknown = stdout === '' ? undefined : JSON.parse(stdout)
  const entries = new Map(
    Object.entries(typeof parsed === 'object' && parsed !== null ? parsed : {}),
  )
  return Object.fromEntries(
    FIELDS.map((field) => {
      const value: unknown = entries.get(field)
      if (typeof value !== 'number') throw new Error(`steady-dns printed no ${field}: ${stderr}`)
      return [field, value]
    }),
  )
}

function unite(results: readonly Readonly<Record<string, number>>[]): LoadResult {
  const sum = (field: string): number =>
    results.reduce((total, result) => total + (result[field] ?? 0), 0)
  const most = (field: string): number => Math.max(...results.map((result) => result[field] ?? 0))
  const [sent, noerror, servfail, other] = ['sent', 'noerror', 'servfail', 'other'].map(sum)
  return {
    sent: sent ?? 0,
    noerror: noerror ?? 0,
    servfail: servfail ?? 0,
    other: other ?? 0,
    lost: (sent ?? 0) - (noerror ?? 0) - (servfail ?? 0) - (other ?? 0),
    maxMs: most('max') / 1000,
    p50Ms: most('p50') / 1000,
    p99Ms: most('p99') / 1000,
    slow: sum('slow'),
    lastSlowMs: most('lastSlowMs'),
  }
}
