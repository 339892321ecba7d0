// The effect of a change of the installed package on the queries of a workload: 1,000 a second over UDP, and some over TCP connections that
// stay open. Each is asked once. Counts from before the change until after it.

import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadCount } from '../support/peers/steady-load.ts'
import { SERVER, type PackageSite } from './site.ts'

const UDP_RATE = 1000
const TCP_RATE = 80
/** Time of the load before the change and after it. */
const BESIDE_MS = 2000

export interface Loss {
  /** Queries that were sent, over UDP and over TCP. */
  readonly udp: number
  readonly tcp: number
  /** Queries without an answer, and answers with a refusal or SERVFAIL. */
  readonly lost: number
  readonly refused: number
  /** TCP connections that were closed with an answer outstanding. */
  readonly closed: number
  readonly slowestMs: number
  /** Duration of the change. */
  readonly ms: number
}

/** Runs `change` under the load. Rejects if `change` does. The load has then ended, too. */
export async function lossDuring(site: PackageSite, change: () => Promise<void>): Promise<Loss> {
  const { host } = site.pod
  const rates = { udpRate: UDP_RATE, tcpRate: TCP_RATE, keepsConnections: true }
  site.load.begin({ host, server: SERVER, ...rates })
  try {
    await sleep(BESIDE_MS)
    const begin = performance.now()
    await change()
    const ms = Math.round(performance.now() - begin)
    await sleep(BESIDE_MS)
    const [udp, tcp] = await site.load.stop()
    return { ...total(udp, tcp), ms }
  } catch (error) {
    await site.load.stop().catch(() => undefined)
    throw error
  }
}

function total(udp: LoadCount, tcp: LoadCount): Omit<Loss, 'ms'> {
  const sum = (field: 'sent' | 'answered' | 'refused' | 'closed'): number => udp[field] + tcp[field]
  return {
    udp: udp.sent,
    tcp: tcp.sent,
    lost: sum('sent') - sum('answered') - sum('refused'),
    refused: sum('refused'),
    closed: sum('closed'),
    slowestMs: Math.round(Math.max(udp.slowestMs, tcp.slowestMs)),
  }
}

/** The result in one line, for the report. */
export function lossText({ udp, tcp, lost, refused, slowestMs, ms }: Loss): string {
  const sent = `${udp} queries over UDP and ${tcp} over TCP`
  return `${lost} lost, ${refused} refused of ${sent}; slowest ${slowestMs} ms; took ${ms} ms`
}

/** True if every query got its answer. */
export function isWhole({ udp, lost, refused, closed }: Loss): boolean {
  return udp > 0 && lost === 0 && refused === 0 && closed === 0
}
