// The uplink as root: a veth pair, addresses that nobody here has, and masquerading in the caller's network namespace.
// Its rules stand in a table of this run's own that nft(8) owns: the kernel removes it when that process ends, which it
// does when we end in whatever way. The pair goes with the command's namespace. Forwarding is switched on where it was
// off, which is said; a process that waits for our end puts it back, unless another run has need of it.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { UnavailableError } from '../core/errors.ts'
import { mustRun, type RunTool } from '../intercept/tools.ts'
import {
  expectsIpv6,
  Helper,
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
const SYSCTL = '/proc/sys/net'
const DEVICES = '/sys/class/net'
const IS_UP = 1

interface Addresses {
  readonly host4: string
  readonly inner4: string
  readonly host6: string
  readonly inner6: string
}

export function openVeth(options: VethOptions): Uplink {
  const name = `${NAME}${options.number}`
  const addresses = addressesOf(options.number)
  const wantsIpv6 = expectsIpv6()
  const undo: (() => Promise<void>)[] = []
  const ready = (async () => {
    await link(options, name, addresses, wantsIpv6)
    const masquerade = new Helper(['nft', '-i'], rulesOf(name, addresses, wantsIpv6))
    undo.push(async () => await masquerade.stop())
    const forwarding = switchForwarding(wantsIpv6)
    if (forwarding.length > 0) {
      const settings = forwarding.map(({ key, before }) => `${SYSCTL}/${key}=${before}`)
      const restore = new Helper([options.program, 'restore', NAME, name, ...settings.reverse()])
      undo.push(async () => await restore.stop())
      const keys = forwarding.map(({ key }) => `net.${key.replaceAll('/', '.')}`).join(', ')
      options.say(`switched on for this run: ${keys}`)
    }
    await waitForRoutes(options, masquerade, 'veth')
    await waitForTable(options, name, masquerade)
  })()
  return {
    addresses: [addresses.inner4, ...(wantsIpv6 ? [addresses.inner6] : [])],
    ready,
    stop: async () => {
      await ready.catch(() => undefined)
      for (const step of undo.reverse()) await step()
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
  const outer = [
    `link add ${name} type veth peer name ${UPLINK_INTERFACE} netns ${pid}`,
    `addr add ${host4}/30 dev ${name}`,
    ...(wantsIpv6 ? [`addr add ${host6}/64 dev ${name} nodad`] : []),
    `link set ${name} up`,
  ]
  const inner = [
    `addr add ${inner4}/30 dev ${UPLINK_INTERFACE}`,
    ...(wantsIpv6 ? [`addr add ${inner6}/64 dev ${UPLINK_INTERFACE} nodad`] : []),
    `link set ${UPLINK_INTERFACE} up`,
    `route add default via ${host4}`,
    ...(wantsIpv6 ? [`route add default via ${host6} dev ${UPLINK_INTERFACE}`] : []),
  ]
  await mustRun(run, 'ip', ['-batch', '-'], `${outer.join('\n')}\n`)
  await mustRun(
    run,
    'nsenter',
    [`--net=/proc/${pid}/ns/net`, 'ip', '-batch', '-'],
    `${inner.join('\n')}\n`,
  )
}

/** Text for nft. Only what the command began comes back to it. */
function rulesOf(name: string, { inner4, inner6 }: Addresses, wantsIpv6: boolean): string {
  const sources = [`ip saddr ${inner4}`, ...(wantsIpv6 ? [`ip6 saddr ${inner6}`] : [])]
  const masquerade = sources.map((source) => `${source} oifname != "${name}" masquerade`).join('; ')
  return (
    `add table inet ${name} { flags owner; }\n` +
    `add chain inet ${name} nat { type nat hook postrouting priority srcnat; }\n` +
    masquerade
      .split('; ')
      .map((rule) => `add rule inet ${name} nat ${rule}\n`)
      .join('') +
    `add chain inet ${name} forward { type filter hook forward priority filter; }\n` +
    `add rule inet ${name} forward iifname "${name}" accept\n` +
    `add rule inet ${name} forward oifname "${name}" ct state established,related accept\n` +
    `add rule inet ${name} forward oifname "${name}" drop\n`
  )
}

async function waitForTable(
  { run, clock }: VethOptions,
  name: string,
  helper: Helper,
): Promise<void> {
  for (let i = 0; i < TABLE_TRIES; i++) {
    const { code, stdout } = await run('nft', ['list', 'table', 'inet', name])
    if (code === 0 && stdout.includes(`oifname "${name}" drop`)) return
    if (helper.isOver) break
    await new Promise<void>((done) => clock.after(TABLE_LOOK_MS, done))
  }
  throw new UnavailableError(`Cannot masquerade the command's connections: nft: ${helper.said}`)
}

const TABLE_TRIES = 200
const TABLE_LOOK_MS = 5

interface Setting {
  readonly key: string
  readonly before: string
}

/** Settings that were changed. */
function switchForwarding(wantsIpv6: boolean): readonly Setting[] {
  const wanted: (readonly [key: string, from: string, to: string])[] = [
    ['ipv4/ip_forward', '0', '1'],
  ]
  if (wantsIpv6 && readKey('ipv6/conf/all/forwarding') === '0') {
    // A forwarding host listens to no router advertisements, unless told so.
    for (const device of readdirSync(DEVICES).filter(mayHearRouters)) {
      wanted.push([`ipv6/conf/${device}/accept_ra`, '1', '2'])
    }
    wanted.push(['ipv6/conf/all/forwarding', '0', '1'])
  }
  const changed: Setting[] = []
  for (const [key, from, to] of wanted) {
    if (readKey(key) !== from) continue
    writeKey(key, to)
    changed.push({ key, before: from })
  }
  return changed
}

/** Up, and neither loopback nor ours. */
function mayHearRouters(device: string): boolean {
  if (device === 'lo' || device.startsWith(NAME)) return false
  const flags = Number(readFileSync(`${DEVICES}/${device}/flags`, 'utf8'))
  return (flags & IS_UP) !== 0
}

function readKey(key: string): string {
  try {
    return readFileSync(`${SYSCTL}/${key}`, 'utf8').trim()
  } catch {
    return ''
  }
}

function writeKey(key: string, value: string): void {
  try {
    writeFileSync(`${SYSCTL}/${key}`, value)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const name = key.replaceAll('/', '.')
    throw new UnavailableError(
      `Cannot forward the command's packets: ${reason}: set sysctl net.${name}=${value}`,
    )
  }
}
