// Forwarding in the caller's network namespace, which the uplink of root needs. Where it is off it is switched on, which is
// reported, and it is restored after the last sandbox that needs it. The launcher's program does so (native/sandbox/forwarding.h), in
// a process that ends with us, and notes the former setting in a file of this network namespace.

import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { UnavailableError } from '../core/errors.ts'
import { errnoName } from '../native/native.ts'
import { Helper } from './helper.ts'

export interface ForwardingOptions {
  /** The launcher's. */
  readonly program: string
  readonly wantsIpv6: boolean
  /** Told what was off and is on now. */
  readonly say: (text: string) => void
}

export interface Forwarding {
  /** Rejects with UnavailableError. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

const RUN = '/run/namegate'
const SYSCTL = '/proc/sys/net'
const DEVICES = '/sys/class/net'
const IS_UP = 1

export function switchForwardingOn({ program, wantsIpv6, say }: ForwardingOptions): Forwarding {
  const helper = new Helper([program, 'forward', usersFile(), ...settings(wantsIpv6)])
  return {
    ready: (async () => {
      const told = (await helper.tells(/^(?:ready|fail .*)$/m)) ?? 'fail  0'
      const [, file = '', errno] = /^fail (.*) (\d+)$/m.exec(told) ?? []
      if (errno !== undefined) {
        throw new UnavailableError(
          `Cannot forward the command's packets: ${errnoName(Number(errno))}: set sysctl ${keyOf(file)}=1`,
        )
      }
      const changed = [...told.matchAll(/^on (.*)$/gm)].map(([, each = '']) => keyOf(each))
      if (changed.length > 0) say(`switched on for this run: ${changed.join(', ')}`)
    })(),
    stop: async () => await helper.stop(),
  }
}

/** Without its folder nothing is shared with other runs, which is all that is lost. */
function usersFile(): string {
  try {
    mkdirSync(RUN, { recursive: true })
  } catch {
    // The helper goes on without.
  }
  return `${RUN}/forwarding-${statSync('/proc/self/ns/net').ino}`
}

/** FILE=FROM>TO, in the order in which they are set. */
function settings(wantsIpv6: boolean): readonly string[] {
  const forwards6 = `${SYSCTL}/ipv6/conf/all/forwarding`
  return [
    `${SYSCTL}/ipv4/ip_forward=0>1`,
    // A forwarding host listens to no router advertisements, unless told so.
    ...(wantsIpv6 && readFileSync(forwards6, 'utf8').trim() === '0'
      ? readdirSync(DEVICES)
          .filter(mayHearRouters)
          .map((device) => `${SYSCTL}/ipv6/conf/${device}/accept_ra=1>2`)
      : []),
    ...(wantsIpv6 ? [`${forwards6}=0>1`] : []),
  ]
}

/** Up, and neither loopback nor one of ours. */
function mayHearRouters(device: string): boolean {
  if (device === 'lo' || device.startsWith('ngx')) return false
  const flags = Number(readFileSync(`${DEVICES}/${device}/flags`, 'utf8'))
  return (flags & IS_UP) !== 0
}

function keyOf(file: string): string {
  return `net.${file.slice(SYSCTL.length + 1).replaceAll('/', '.')}`
}
