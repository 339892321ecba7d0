// This file defines the port for an uplink, which connects the command's network namespace with the caller's. It also contains what all
// uplinks have in common: the name of the interface, and the wait for default routes.

import { readFileSync } from 'node:fs'
import type { Clock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import type { Helper } from './helper.ts'

/** The interface in the command's network namespace. The datapath enforces policy at this interface. */
export const UPLINK_INTERFACE = 'eth0'

/** Why an uplink was not opened. The reason of the launcher itself is what the user reads. */
export const LAUNCHER_ENDED = 'Cannot connect the command: its launcher ended'

/** An uplink that is being opened, or works. */
export interface Uplink {
  /** Addresses or prefixes that the command sends from. */
  readonly addresses: readonly string[]
  /** Addresses that the caller's network namespace has because of the uplink. */
  readonly callerAddresses: readonly string[]
  /** Resolves when the uplink works. Rejects with UnavailableError if it cannot work. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

export interface UplinkOptions {
  readonly clock: Clock
  /** The launcher's process. It is in the command's network namespace when `isolated` resolves. */
  readonly pid: number
  /** Resolves with undefined if the launcher ended before. */
  readonly isolated: Promise<object | undefined>
  /** The path of the launcher's program. It also runs the helpers that must end with this process. */
  readonly program: string
}

const LOOK_MS = 2
const WAIT_MS = 10_000
/** How long the command waits for IPv6 after IPv4 works. */
const IPV6_WAIT_MS = 300

/**
 * Waits until the command's namespace has default routes: at most 10 s for IPv4, and then at most 0.3 s for IPv6. Throws
 * UnavailableError without an IPv4 route, and when `helper` ends. `name` is the uplink in this error.
 */
export async function waitForRoutes(
  { clock, pid }: UplinkOptions,
  helper: Helper | undefined,
  name: string,
): Promise<void> {
  const begun = clock.now()
  let since: number | undefined
  for (;;) {
    const now = clock.now()
    const [ipv4, ipv6] = [hasRoute4(pid), hasRoute6(pid)]
    if (ipv4) since ??= now
    if (ipv4 && (ipv6 || !expectsIpv6() || now - (since ?? now) > IPV6_WAIT_MS)) return
    if (helper?.isOver === true)
      throw new UnavailableError(`Cannot connect the command by ${name}: ${helper.said}`)
    if (now - begun > WAIT_MS) {
      throw new UnavailableError(
        `Cannot connect the command by ${name}: no route after ${WAIT_MS / 1000} s`,
      )
    }
    await new Promise<void>((done) => clock.after(LOOK_MS, done))
  }
}

/** Returns true if the caller has an IPv6 address on an interface that is not loopback. */
export function expectsIpv6(): boolean {
  return read('/proc/net/if_inet6')
    .split('\n')
    .some((line) => line !== '' && !/\slo$/.test(line))
}

function hasRoute4(pid: number): boolean {
  return /^eth0\t00000000\t/m.test(read(`/proc/${pid}/net/route`))
}

function hasRoute6(pid: number): boolean {
  return /^0{32} 00 .*\seth0$/m.test(read(`/proc/${pid}/net/ipv6_route`))
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
