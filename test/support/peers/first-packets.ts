// Reads and prints the results of the client first-packet.c.

import { execFileSync } from 'node:child_process'
import type { TestContext } from 'node:test'
import type { Host } from '../labs/lab.ts'

export interface Attempt {
  readonly index: number
  readonly address: string
  /** Nanoseconds from recv's return to connect's call. */
  readonly gap: number
  /** Nanoseconds of connect. */
  readonly connecting: number
  /** 0: connected. */
  readonly errno: number
}

export function toolMissing(name: string): boolean {
  try {
    execFileSync('which', [name], { stdio: 'ignore' })
    return false
  } catch {
    return true
  }
}

export function parseAttempts(stdout: string): Attempt[] {
  return stdout.trim().split('\n').map(parseAttempt)
}

function parseAttempt(line: string): Attempt {
  const [index, address = '', gap, connecting, errno] = line.split(' ')
  return {
    index: Number(index),
    address,
    gap: Number(gap),
    connecting: Number(connecting),
    errno: Number(errno),
  }
}

export function lost(attempts: readonly Attempt[]): readonly Attempt[] {
  return attempts.filter(({ errno }) => errno !== 0)
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
}

/** `p50 1.2 us, p99 4.5 us, max 60.0 us` */
function formatSpread(values: readonly number[]): string {
  const at = (part: number) => `${(percentile(values, part) / 1000).toFixed(1)} us`
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`
}

export function show(t: TestContext, what: string, attempts: readonly Attempt[]): void {
  const connected = attempts.filter(({ errno }) => errno === 0)
  t.diagnostic(`${what}: ${connected.length} of ${attempts.length} connected`)
  t.diagnostic(`  recv returned -> connect called: ${formatSpread(attempts.map(({ gap }) => gap))}`)
  const connecting = connected.map((each) => each.connecting)
  if (connecting.length > 0) t.diagnostic(`  connect took: ${formatSpread(connecting)}`)
}

/** TCP segments that the host's kernel sent again, both families. A lost SYN is among them. */
export async function retransmitted(host: Host): Promise<Record<string, number>> {
  const { stdout } = await host.run('cat', ['/proc/net/snmp', '/proc/net/netstat'])
  const counters = { ...countersOf(stdout, 'Tcp:'), ...countersOf(stdout, 'TcpExt:') }
  const { RetransSegs = NaN, TCPSynRetrans = NaN, TCPTimeouts = NaN } = counters
  return { RetransSegs, TCPSynRetrans, TCPTimeouts }
}

/** Reads a line `Tcp: A B` above `Tcp: 1 2`. */
function countersOf(text: string, head: string): Record<string, number> {
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith(`${head} `))
    .map((line) => line.split(' ').slice(1))
  return Object.fromEntries(names.map((name, i) => [name, Number(values[i])]))
}
