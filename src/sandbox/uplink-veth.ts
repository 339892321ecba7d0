// The uplink of root: a veth pair, addresses that no interface here has, and masquerading in the caller's network namespace. Its rules
// are in a table of this run that nft(8) owns: the kernel removes the table when that process ends, and the process ends with
// us. The pair ends with the command's namespace. Steps that can begin early run as programs of their own, while the gate is
// made.

import { UnavailableError } from '../core/errors.ts'
import type { RunTool } from '../intercept/tools.ts'
import { switchForwardingOn } from './forwarding.ts'
import { Helper, isInstalled } from './helper.ts'
import {
  expectsIpv6,
  UPLINK_INTERFACE,
  waitForRoutes,
  type Uplink,
  type UplinkOptions,
} from './uplink.ts'

export interface VethOptions extends UplinkOptions {
  readonly run: RunTool
  /** Of this run: distinguishes interfaces, addresses and tables. */
  readonly number: number
  /** Told when forwarding was off and is on now. */
  readonly say: (text: string) => void
}

/** Interfaces and tables of all runs begin so. */
const NAME = 'ngx'
const PACKAGES = { ip: 'iproute2', nft: 'nftables', nsenter: 'util-linux' } as const

interface Addresses {
  readonly host4: string
  readonly inner4: string
  readonly host6: string
  readonly inner6: string
}

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
  const linked = link(options, name, addresses, wantsIpv6)
  const masquerade = new Helper(['nft', '-i'], rulesOf(name, addresses, wantsIpv6))
  const forwarding = switchForwardingOn({ ...options, wantsIpv6 })
  const ready = (async () => {
    await Promise.all([linked, mustMasquerade(masquerade, name), forwarding.ready])
    await waitForRoutes(options, masquerade, 'veth')
  })()
  return {
    addresses: [addresses.inner4, ...(wantsIpv6 ? [addresses.inner6] : [])],
    ready,
    stop: async () => {
      await linked.catch(() => undefined)
      await forwarding.stop()
      await masquerade.stop()
    },
  }
}

/** One /30 of 100.64.0.0/10 and one /64 of fd6e:6765::/32 for each number. */
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

/** /30 blocks that are used: a part of the 2^20 there are. */
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
  const { code, stderr } = await run('sh', ['-e'], `${script.join('\n')}\n`)
  if (code === 0) return
  const said = stderr.split('\n').find((line) => line.trim() !== '') ?? 'ip says nothing'
  throw new UnavailableError(`Cannot connect the command by veth: ${said.trim()}`)
}

/** Text for nft. Only what the command began comes back to it. The last lines show what came of the others. */
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
  const told = await helper.tells(/^payload expression/m)
  if (told?.includes(`\toifname "${name}" drop\n`) === true) return
  throw new UnavailableError(`Cannot masquerade the command's connections: nft: ${helper.said}`)
}
