// A node where nftables' tproxy sends the pods' queries to the addon's UDP listener, for kernel tests.

import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { Host } from './lab.ts'
import { podLab, type PodLab } from './lab-pod.ts'
import type { LabProcess } from './lab-process.ts'
import { programArgs } from './program.ts'

export const PORT = 10_053
export const SERVERS = ['10.96.0.10', '198.51.100.7', 'fd00:96::10', '2001:db8:ff::7'] as const

const TPROXY_RULES = `
table inet test {
  chain in {
    type filter hook prerouting priority mangle
    iifname "lxc*" udp dport 53 meta nfproto ipv4 tproxy ip to :${PORT} meta mark set 1 accept
    iifname "lxc*" udp dport 53 meta nfproto ipv6 tproxy ip6 to :${PORT} meta mark set 1 accept
  }
}`
/** A resolver of the host on every address. By default it alone has the port on its addresses. */
const RESOLVER = `
const socket = require('dgram').createSocket({ type: process.argv[1], ipv6Only: process.argv[1] === 'udp6', reuseAddr: process.argv[2] === 'shared' })
socket.on('message', () => console.log('asked'))
socket.on('error', (error) => { console.log(error.code); process.exit(1) })
socket.bind(53, () => console.log('ready'))`

export function helper(name: string): readonly string[] {
  const path = fileURLToPath(new URL(`../peers/${name}.ts`, import.meta.url))
  return [process.execPath, ...programArgs(path)]
}

export async function startListener(host: Host, ...args: readonly string[]): Promise<LabProcess> {
  const listener = host.start('env', [...helper('udp-listener'), ...args])
  await listener.untilOutput(/^ready /m, 20_000)
  return listener
}

/** Asks one server over UDP. dig accepts an answer only from the address and port that it asked. */
export async function ask(
  host: Host,
  server: string,
  name = 'a.test',
  more: string[] = [],
): Promise<string> {
  const args = ['+notcp', '+ignore', '+tries=2', '+time=5', ...more, `@${server}`, name]
  const { stdout } = await host.run('dig', args)
  return /status: (\w+)/.exec(stdout)?.[1] ?? stdout
}

/** The last query that the listener printed. */
export function lastSeen(listener: LabProcess): object {
  const lines = listener.stdout.matchAll(/^(\S+) asks (\S+) (\d+) on (\d+)$/gm)
  const [, client, asked, port, index] = [...lines].at(-1) ?? []
  return { client, asked, port: Number(port), interface: Number(index) }
}

/** How the listener has answered from asked addresses: sockets opened, ports with hand-made packets, failures. */
export async function repliesOf(listener: LabProcess, host: Host, server: string): Promise<string> {
  const from = listener.stdout.length
  await ask(host, server, 'counters.test')
  return /^replies (.*)$/m.exec(listener.stdout.slice(from))?.[1] ?? assert.fail('no counters')
}

export function indexOf(host: Host, name: string): number {
  return Number(/^(\d+):/.exec(host.ip('-o', 'link', 'show', 'dev', name))?.[1] ?? Number.NaN)
}

export async function loadRules(host: Host, rules: string): Promise<void> {
  const { code, stderr } = await host.run('sh', ['-c', `printf '%s' "$1" | nft -f -`, 'sh', rules])
  assert.equal(code, 0, stderr)
}

function routeMarked(host: Host): void {
  for (const family of ['-4', '-6']) {
    host.ip(family, 'rule', 'add', 'fwmark', '1', 'lookup', '100')
    host.ip(family, 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', '100')
  }
}

/** Pods on a node that sends their queries to port PORT. */
export async function tproxyLab(pods: number): Promise<PodLab> {
  const lab = podLab({ pods })
  await loadRules(lab.node, TPROXY_RULES)
  routeMarked(lab.node)
  return lab
}

/** Starts a listener of mode tproxy on the node, with a resolver before it on request. */
export async function withTproxy(
  node: Host,
  resolver: readonly string[] | undefined,
  body: (listener: LabProcess, resolvers: readonly LabProcess[]) => Promise<void>,
): Promise<void> {
  const resolvers = []
  for (const type of resolver === undefined ? [] : ['udp4', 'udp6']) {
    const args = ['-e', RESOLVER, '--', type, ...(resolver ?? [])]
    const process_ = node.start(process.execPath, args)
    await process_.untilOutput(/^ready$/m)
    resolvers.push(process_)
  }
  const listener = await startListener(node, 'tproxy', String(PORT))
  try {
    await body(listener, resolvers)
  } finally {
    await Promise.all([listener, ...resolvers].map(async (each) => await each.stop()))
  }
}
