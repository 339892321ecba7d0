// `openVeth` opens the uplink that needs root privileges: a veth pair between the caller's and the command's network namespaces, with
// masquerading and forwarding in the caller's namespace. A process of nft(8) owns the table with the rules. The process of nft ends when
// namegate ends, and the kernel then removes the table. The veth pair ends with the command's namespace. All steps run as separate
// programs, while namegate prepares the gate.

import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { UnavailableError } from '../core/errors.ts'
import type { RunTool } from '../intercept/tools.ts'
import { errnoName } from '../native/native.ts'
import { Helper, isInstalled } from './helper.ts'
import {
  expectsIpv6,
  LAUNCHER_ENDED,
  UPLINK_INTERFACE,
  waitForRoutes,
  type Uplink,
  type UplinkOptions,
} from './uplink.ts'

export interface VethOptions extends UplinkOptions {
  readonly run: RunTool
  /** The number of this run. Interfaces, addresses and tables of different runs differ by this number. */
  readonly number: number
  /** Receives a line of text with the settings of forwarding that this run switched on. */
  readonly say: (text: string) => void
}

/** The beginning of the names of interfaces and tables of all runs. */
const NAME = 'ngx'
const PACKAGES = { ip: 'iproute2', nft: 'nftables', nsenter: 'util-linux' } as const

interface Addresses {
  readonly host4: string
  readonly inner4: string
  readonly host6: string
  readonly inner6: string
}

/** Starts to open the uplink, which works when `ready` resolves. Throws UnavailableError if a needed program is not installed. */
export function openVeth(options: VethOptions): Uplink {
  for (const [program, debian] of Object.entries(PACKAGES)) {
    if (isInstalled(program)) continue
    throw new UnavailableError(
      `Cannot run ${program}: it is not installed: apt-get install ${debian}`,
    )
  }
  const name = `${NAME}${options.number}`
  const addresses = addressesOf(options.number)
  const wantsIpv6 = expectsIpv6()
  // The other two steps need no network namespace of the command, so they begin at once.
  const linked = options.isolated.then(async (isolated) => {
    if (isolated === undefined) throw new UnavailableError(LAUNCHER_ENDED)
    await link(options, name, addresses, wantsIpv6)
  })
  const masquerade = new Helper(['nft', '-i'], rulesOf(name, addresses, wantsIpv6))
  const forwarding = switchForwardingOn(options, wantsIpv6)
  const ready = (async () => {
    await Promise.all([linked, mustMasquerade(masquerade, name), forwarding.ready])
    await waitForRoutes(options, masquerade, 'veth')
  })()
  return {
    addresses: [addresses.inner4, ...(wantsIpv6 ? [addresses.inner6] : [])],
    callerAddresses: [addresses.host4, ...(wantsIpv6 ? [addresses.host6] : [])],
    ready,
    stop: async () => {
      await linked.catch(() => undefined)
      await forwarding.stop()
      await masquerade.stop()
    },
  }
}

/** Returns the addresses of a run: from one /30 of 100.64.0.0/10 and one /64 of fd6e:6765::/32. */
function addressesOf(number: number): Addresses {
  const at = (number % BLOCKS) * 4
  const base = `100.${64 + (at >> 16)}.${(at >> 8) & 0xff}`
  const block = (number % BLOCKS).toString(16)
  return {
    host4: `${base}.${(at & 0xff) + 1}`,
    inner4: `${base}.${(at & 0xff) + 2}`,
    host6: `fd6e:6765:${block}::1`,
    inner6: `fd6e:6765:${block}::2`,
  }
}

/** How many of the 2^20 blocks (/30) of 100.64.0.0/10 runs use. */
export const BLOCKS = 65_536

async function link(
  { run, pid }: VethOptions,
  name: string,
  { host4, inner4, host6, inner6 }: Addresses,
  wantsIpv6: boolean,
): Promise<void> {
  const script = [
    'ip -batch - <<END',
    `link add ${name} type veth peer name ${UPLINK_INTERFACE} netns ${pid}`,
    `addr add ${host4}/30 dev ${name}`,
    ...(wantsIpv6 ? [`addr add ${host6}/64 dev ${name} nodad`] : []),
    `link set ${name} up`,
    'END',
    `nsenter --net=/proc/${pid}/ns/net ip -batch - <<END`,
    `addr add ${inner4}/30 dev ${UPLINK_INTERFACE}`,
    ...(wantsIpv6 ? [`addr add ${inner6}/64 dev ${UPLINK_INTERFACE} nodad`] : []),
    `link set ${UPLINK_INTERFACE} up`,
    `route add default via ${host4}`,
    ...(wantsIpv6 ? [`route add default via ${host6} dev ${UPLINK_INTERFACE}`] : []),
    'END',
  ]
  // As an argument: a shell that reads its script from a pipe ends only when this process has time to close the pipe.
  const { code, stderr } = await run('sh', ['-ec', script.join('\n')])
  if (code === 0) return
  const said = stderr.split('\n').find((line) => line.trim() !== '') ?? 'ip says nothing'
  throw new UnavailableError(`Cannot connect the command by veth: ${said.trim()}`)
}

/** Returns text for nft. The rules let packets reach the command only on connections that it began. The last lines print the table. */
function rulesOf(name: string, { inner4, inner6 }: Addresses, wantsIpv6: boolean): string {
  const sources = [`ip saddr ${inner4}`, ...(wantsIpv6 ? [`ip6 saddr ${inner6}`] : [])]
  return [
    `add table inet ${name} { flags owner; }`,
    `add chain inet ${name} nat { type nat hook postrouting priority srcnat; }`,
    ...sources.map(
      (source) => `add rule inet ${name} nat ${source} oifname != "${name}" masquerade`,
    ),
    `add chain inet ${name} forward { type filter hook forward priority filter; }`,
    `add rule inet ${name} forward iifname "${name}" accept`,
    `add rule inet ${name} forward oifname "${name}" ct state established,related accept`,
    `add rule inet ${name} forward oifname "${name}" drop`,
    `list table inet ${name}`,
    'describe ip saddr',
    '',
  ].join('\n')
}

async function mustMasquerade(helper: Helper, name: string): Promise<void> {
  const listed = await helper.printed(/^payload expression/m)
  if (listed?.includes(`\toifname "${name}" drop\n`) === true) return
  throw new UnavailableError(`Cannot masquerade the command's connections: nft: ${helper.said}`)
}

/**
 * Forwarding in the caller's network namespace. If forwarding is off, the launcher's program switches it on
 * (native/sandbox/forwarding.h), in a process that ends with this process. When the last sandbox that needs forwarding ends, the program
 * restores the former setting. A file for each network namespace keeps the former setting.
 */
interface Forwarding {
  /** Resolves when forwarding is on. Rejects with UnavailableError if it cannot be switched on. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

const RUN = '/run/namegate'
const SYSCTL = '/proc/sys/net'
const DEVICES = '/sys/class/net'
const IS_UP = 1

function switchForwardingOn({ program, say }: VethOptions, wantsIpv6: boolean): Forwarding {
  const helper = new Helper([program, 'forward', usersFile(), ...settings(wantsIpv6)])
  return {
    ready: (async () => {
      const lines = (await helper.printed(/^(?:ready|fail .*)$/m)) ?? 'fail  0'
      const [, file = '', errno] = /^fail (.*) (\d+)$/m.exec(lines) ?? []
      if (errno !== undefined) {
        throw new UnavailableError(
          `Cannot forward the command's packets: ${errnoName(Number(errno))}: set sysctl ${keyOf(file)}=1`,
        )
      }
      const changed = [...lines.matchAll(/^on (.*)$/gm)].map(([, each = '']) => keyOf(each))
      if (changed.length > 0) say(changedText(changed))
    })(),
    stop: async () => await helper.stop(),
  }
}

function changedText(keys: readonly string[]): string {
  const routers = keys.some((key) => key.endsWith('.accept_ra'))
    ? ' (with accept_ra, the host keeps its own routes from routers)'
    : ''
  return `changed until the last run ends, so that this host forwards the command's packets: ${keys.join(', ')}${routers}`
}

/** Returns the file that keeps the former setting. A run that cannot make its folder does not know of other runs. */
function usersFile(): string {
  try {
    mkdirSync(RUN, { recursive: true })
  } catch {
    // The helper works without the file.
  }
  return `${RUN}/forwarding-${statSync('/proc/self/ns/net').ino}`
}

/**
 * Returns the settings in the order in which they are set. `FILE=FROM>TO` sets FILE to TO if its value is FROM. With a dash in front, the
 * kernel sets FILE to TO when forwarding of the host ends, and the last run sets it to FROM again.
 */
function settings(wantsIpv6: boolean): readonly string[] {
  const forwards6 = `${SYSCTL}/ipv6/conf/all/forwarding`
  return [
    ...forwardingDevices('ipv4'),
    ...(wantsIpv6 ? forwardingDevices('ipv6') : []),
    `${SYSCTL}/ipv4/ip_forward=0>1`,
    // A forwarding host ignores router advertisements unless accept_ra is 2.
    ...(wantsIpv6 && readFileSync(forwards6, 'utf8').trim() === '0'
      ? readdirSync(DEVICES)
          .filter(mayHearRouters)
          .map((device) => `${SYSCTL}/ipv6/conf/${device}/accept_ra=1>2`)
      : []),
    ...(wantsIpv6 ? [`${forwards6}=0>1`] : []),
  ]
}

/** The devices that forward while the host does not, as settings. */
function forwardingDevices(family: 'ipv4' | 'ipv6'): readonly string[] {
  const folder = `${SYSCTL}/${family}/conf`
  const isOn = (device: string): boolean => {
    try {
      return readFileSync(`${folder}/${device}/forwarding`, 'utf8').trim() === '1'
    } catch {
      return false // the device has gone meanwhile
    }
  }
  if (isOn('all')) return []
  const devices = readdirSync(folder).filter((device) => device !== 'default' && isOn(device))
  return devices.map((device) => `-${folder}/${device}/forwarding=1>0`)
}

/** Returns true for a device that is up, and that is neither loopback nor an interface of a sandbox. */
function mayHearRouters(device: string): boolean {
  if (device === 'lo' || device.startsWith(NAME)) return false
  const flags = Number(readFileSync(`${DEVICES}/${device}/flags`, 'utf8'))
  return (flags & IS_UP) !== 0
}

function keyOf(file: string): string {
  return `net.${file.slice(SYSCTL.length + 1).replaceAll('/', '.')}`
}
