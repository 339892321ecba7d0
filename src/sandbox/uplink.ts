// The port to an uplink, which connects the command's network namespace with the caller's, and what all uplinks share: the
// name of the interface, and the wait for the kernel's routes.

import { accessSync, constants, readFileSync } from 'node:fs'
import type { Clock } from '../core/clock.ts'
import { systemCodeOf, UnavailableError } from '../core/errors.ts'
import type { Helper } from './helper.ts'

/** In the command's network namespace; what is fenced. */
export const UPLINK_INTERFACE = 'eth0'

export interface Uplink {
  /** Addresses or prefixes that the command sends from. */
  readonly addresses: readonly string[]
  /** Resolves when it works; rejects with UnavailableError. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

export interface UplinkOptions {
  readonly clock: Clock
  /** The launcher, whose network namespace it is. */
  readonly pid: number
  /** The launcher's program: it runs helpers that are to end with us. */
  readonly program: string
}

const LOOK_MS = 2
const WAIT_MS = 10_000
/** What else than IPv4 there is may follow so much later, before the command starts without. */
const IPV6_WAIT_MS = 300

/** Waits until the namespace has default routes; IPv6 a little, IPv4 for long. */
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

/** Whether the caller has any IPv6 address but loopback's. */
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

/** Throws UnavailableError with the remedy when a tap cannot be made. */
export function mustHaveTun(): void {
  try {
    accessSync(TUN, constants.R_OK | constants.W_OK)
  } catch (error) {
    const isMissing = systemCodeOf(error) === 'ENOENT'
    throw new UnavailableError(
      isMissing
        ? `Cannot connect the command: ${TUN} is not there: as root: modprobe tun; in a container: --device ${TUN}`
        : `Cannot connect the command: no permission for ${TUN}: as root: chmod 0666 ${TUN}`,
    )
  }
}

const TUN = '/dev/net/tun'
