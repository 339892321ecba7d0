// `openUserUplink` opens an uplink without root privileges, by pasta (Debian package passt) or slirp4netns. These programs carry the
// command's connections through sockets of their own in the caller's network namespace. Neither program lets the command reach the caller's
// loopback.

import { accessSync, constants } from 'node:fs'
import { systemCodeOf, UnavailableError } from '../core/errors.ts'
import { Helper, isInstalled } from './helper.ts'
import {
  expectsIpv6,
  LAUNCHER_ENDED,
  UPLINK_INTERFACE,
  waitForRoutes,
  type Uplink,
  type UplinkOptions,
} from './uplink.ts'

export type UserUplink = 'pasta' | 'slirp4netns'

/** The command's addresses. They are fixed in slirp4netns, and pasta receives them as arguments. */
const ADDRESS4 = '10.0.2.100'
const GATEWAY4 = '10.0.2.2'
const PREFIX6 = 'fd00::/64'
const ADDRESS6 = 'fd00::64'
const GATEWAY6 = 'fd00::2'
const TUN = '/dev/net/tun'

/** Returns the program to use: `wanted`, or else the first that is installed. Throws UnavailableError if there is none. */
export function chooseUserUplink(wanted?: UserUplink): UserUplink {
  const choices: readonly UserUplink[] = wanted === undefined ? ['pasta', 'slirp4netns'] : [wanted]
  const found = choices.find(isInstalled)
  if (found !== undefined) return found
  throw new UnavailableError(
    wanted === 'slirp4netns'
      ? 'Cannot connect the command: slirp4netns is not installed: apt-get install slirp4netns'
      : wanted === 'pasta'
        ? 'Cannot connect the command: pasta is not installed: apt-get install passt'
        : 'Cannot connect the command: neither pasta nor slirp4netns is installed: apt-get install passt',
  )
}

/** Starts the program for the uplink. Throws UnavailableError if a TUN device cannot be used. */
export function openUserUplink(kind: UserUplink, options: UplinkOptions): Uplink {
  mustHaveTun()
  const started = options.isolated.then((isolated) => {
    if (isolated === undefined) throw new UnavailableError(LAUNCHER_ENDED)
    return new Helper([options.program, 'guard', ...COMMANDS[kind](options.pid)])
  })
  return {
    addresses: [ADDRESS4, PREFIX6],
    callerAddresses: [],
    ready: started.then(async (helper) => await waitForRoutes(options, helper, kind)),
    stop: async () =>
      await started.then(
        async (helper) => await helper.stop(),
        () => undefined,
      ),
  }
}

const COMMANDS: Readonly<Record<UserUplink, (pid: number) => readonly string[]>> = {
  pasta: (pid) => [
    'pasta',
    ...['--foreground', '--quiet', '--config-net', '--ns-ifname', UPLINK_INTERFACE],
    ...['--no-map-gw', '--no-dhcp', '--no-dhcpv6', '--no-ra'],
    ...['-t', 'none', '-u', 'none', '-T', 'none', '-U', 'none'],
    ...['--address', ADDRESS4, '--netmask', '255.255.255.0', '--gateway', GATEWAY4],
    ...(expectsIpv6() ? ['--address', ADDRESS6, '--gateway', GATEWAY6] : ['--ipv4-only']),
    String(pid),
  ],
  slirp4netns: (pid) => [
    'slirp4netns',
    ...['--configure', '--enable-ipv6', '--disable-host-loopback', '--disable-dns'],
    ...[String(pid), UPLINK_INTERFACE],
  ],
}

/** Throws UnavailableError that names the remedy if /dev/net/tun cannot be opened. */
function mustHaveTun(): void {
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
