// The peers, each as a pure forwarder: no cache, one worker thread, the same upstream, and no limit that it reaches. Their settings are those
// with the best figures here.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { fetchPeer, type PeerProgram } from './packages.ts'
import type { Running, Subject } from './proxy.ts'
import { SUFFIX, type Stage } from './stage.ts'

export function mkDirect(): Subject {
  const running = { pid: 0, server: DNS_4, note: nothing, stop: async () => {} }
  return { name: 'direct', settings: 'no proxy', start: async () => running }
}

export function mkDnsdist(stage: Stage, cache: string): Subject {
  const program = fetchPeer(cache, 'dnsdist')
  const text = [
    `setLocal("${stage.pod.gateway4}:53", {maxInFlight=4096})`,
    'setACL("0.0.0.0/0")',
    `newServer({address="${DNS_4}:53", checkInterval=60, maxInFlight=4096})`,
    'setMaxUDPOutstanding(65535)',
    'setUDPMultipleMessagesVectorSize(64)',
    'setMaxTCPClientThreads(1)',
    'setMaxTCPQueuedConnections(4096)',
  ]
  const settings = `dnsdist ${program.version}: ${text.join('; ')}`
  return mkPeer(stage, 'dnsdist', program, settings, (folder) => {
    const file = join(folder, 'dnsdist.conf')
    writeFileSync(file, `${text.join('\n')}\n`)
    return ['--supervised', '--disable-syslog', '-C', file]
  })
}

export function mkUnbound(stage: Stage, cache: string): Subject {
  const program = fetchPeer(cache, 'unbound')
  const server = [
    'num-threads: 1', `interface: ${stage.pod.gateway4}`, 'port: 53', 'access-control: 0.0.0.0/0 allow',
    'module-config: "iterator"', 'do-ip6: no', 'minimal-responses: yes', 'qname-minimisation: no',
    'aggressive-nsec: no', 'outgoing-range: 8192', 'num-queries-per-thread: 4096', 'so-rcvbuf: 4m', 'so-sndbuf: 4m',
    'incoming-num-tcp: 1024', 'msg-cache-size: 1m', 'rrset-cache-size: 1m', 'chroot: ""', 'username: ""',
    'use-syslog: no', 'local-zone: "test." nodefault', 'pidfile: ""', 'do-daemonize: no',
  ] // prettier-ignore
  const forward = ['name: "."', `forward-addr: ${DNS_4}`, 'forward-no-cache: yes']
  const settings = `unbound ${program.version}: ${[...server, ...forward].join('; ')}`
  return mkPeer(stage, 'unbound', program, settings, (folder) => {
    const file = join(folder, 'unbound.conf')
    const lines = ['server:', `  directory: "${folder}"`, ...server.map((line) => `  ${line}`)]
    lines.push('remote-control:', '  control-enable: no', 'forward-zone:')
    writeFileSync(file, `${[...lines, ...forward.map((line) => `  ${line}`)].join('\n')}\n`)
    return ['-d', '-c', file]
  })
}

export function mkDnsmasq(stage: Stage, cache: string, nftset: boolean): Subject {
  const program = fetchPeer(cache, 'dnsmasq-base')
  const args = [
    '--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--cache-size=0', '--user=root',
    '--pid-file=', '--bind-interfaces', `--listen-address=${stage.pod.gateway4}`, '--except-interface=lo',
    `--server=${DNS_4}`, '--dns-forward-max=10000', '--log-facility=-',
  ] // prettier-ignore
  if (nftset) args.push(`--nftset=/${SUFFIX}/4#inet#peers#names`)
  const settings = `dnsmasq ${program.version}: ${args.join(' ')}`
  return mkPeer(stage, nftset ? 'dnsmasq-nftset' : 'dnsmasq', program, settings, async () => {
    if (nftset) await mkSet(stage)
    return args
  })
}

/** Makes a fresh set. Its elements have a timeout of 10 minutes, because dnsmasq never removes one. */
async function mkSet(stage: Stage): Promise<void> {
  const commands = [
    'table inet peers',
    'delete table inet peers',
    'table inet peers { set names { type ipv4_addr; timeout 10m; }; }',
  ].join('\n')
  const { code, stderr } = await stage.lab.node.run('nft', [commands])
  if (code !== 0) throw new Error(`Cannot make the set: ${stderr}`)
}

function mkPeer(
  stage: Stage,
  name: Subject['name'],
  program: PeerProgram,
  settings: string,
  prepare: (folder: string) => readonly string[] | Promise<readonly string[]>,
): Subject {
  const start = async (): Promise<Running> => {
    const folder = mkdtempSync(join(tmpdir(), `${name}-`))
    const child = stage.start(program.path, await prepare(folder), program.env)
    await child.untilListening('udp', 53)
    await child.untilListening('tcp', 53)
    const stop = async () => {
      await child.stop()
      rmSync(folder, { recursive: true, force: true })
    }
    return { pid: child.pid, server: stage.pod.gateway4, note: nothing, stop }
  }
  return { name, settings, start }
}

async function nothing(): Promise<string> {
  return ''
}
