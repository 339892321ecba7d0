// The daemon under test: the real one, in this process, with real sockets on loopback and the memory datapath. Its policies and endpoints are
// files in a folder of its own. A naive reading of them says what a name may do.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAddress } from '../../../src/core/ip.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { Daemon } from '../../../src/daemon/daemon.ts'
import { openDatapath } from '../../../src/daemon/open-datapath.ts'
import { SILENT } from '../../../src/telemetry/silent.ts'
import { NODE, PROTECTED } from './guarded.ts'

/** `open` can ask everything, `walled` only the names of its DNS rules. `nobody` is no endpoint. */
export type Who = 'open' | 'walled' | 'nobody'

export const ADDRESS_OF: Readonly<Record<Who, string>> = {
  open: '127.0.0.2',
  walled: '127.0.0.3',
  nobody: '127.0.0.9',
}

/** Seconds. */
export const MIN_TTL = 5
export const MAX_TTL = 3600
export const UDP_MESSAGE_MAX = 4096
/** The time of one query with both attempts, in milliseconds. */
export const TIMEOUT_MS = 4000
export const ATTEMPTS = 2

const POLICIES = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: open }
spec:
  endpointSelector: { matchLabels: { app: open } }
  egress:
    - toFQDNs: [{ matchPattern: '*.one.example' }, { matchPattern: '**.many.example' }]
      toPorts: [{ ports: [{ port: '443', protocol: TCP }] }]
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: walled }
spec:
  endpointSelector: { matchLabels: { app: walled } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '**.example' }] } }]
    - toFQDNs: [{ matchPattern: '*z.one.example' }]
`

const ENDPOINTS = `
endpoints:
  - { name: open, addresses: [${ADDRESS_OF.open}], labels: { app: open } }
  - { name: walled, addresses: [${ADDRESS_OF.walled}], labels: { app: walled } }
`

/** Suffixes of the asked names: under one selector, under two, under none, and under none with odd octets. */
export const SUFFIXES: readonly (readonly string[])[] = [
  ['one', 'example'],
  ['one', 'example'],
  ['many', 'example'],
  ['b', 'many', 'example'],
  ['www', 'example'],
  ['plain', 'test'],
  ['a.b', 'one', 'example'],
  ['\u0000\u00ff', 'test'],
]

/** Whether policy lets the endpoint ask the name (labels in lower case). */
export function mayAsk(who: Who, labels: readonly string[]): boolean {
  if (who !== 'walled') return true
  return labels.length > 1 && labels.at(-1) === 'example' && labels.every(fits)
}

/** Labels that the policies above give to an address of the name. */
export function labelsFor(labels: readonly string[]): readonly string[] {
  const [first = ''] = labels
  const found: string[] = []
  if (!labels.every(fits)) return found
  const under = labels.slice(1).join('.')
  if (under === 'one.example') found.push('fqdn:*.one.example')
  if (under === 'one.example' && first.endsWith('z')) found.push('fqdn:*z.one.example')
  const many = labels.slice(-2).join('.') === 'many.example' && labels.length > 2
  if (many) found.push('fqdn:**.many.example')
  return found
}

function fits(label: string): boolean {
  return /^[a-z0-9_-]+$/.test(label)
}

export interface World {
  readonly daemon: Daemon
  /** UDP and TCP port of its listener. */
  readonly port: number
  stop(): void
}

/** Starts the daemon in front of the server at that port of 127.0.0.1. */
export async function startWorld(upstreamPort: number): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-fuzz-'))
  writeFileSync(join(folder, 'policies.yaml'), POLICIES)
  writeFileSync(join(folder, 'endpoints.yaml'), ENDPOINTS)
  const config = parseConfig(configText(folder, upstreamPort), 'fuzz')
  const datapath = openDatapath(config)
  const nodeAddresses = NODE.flatMap((each) => parseAddress(each) ?? [])
  const daemon = new Daemon({ config, log: SILENT, datapath, nodeAddresses })
  const stop = (): void => {
    daemon.stop()
    rmSync(folder, { recursive: true })
  }
  try {
    await daemon.start()
  } catch (error) {
    stop()
    throw error
  }
  return { daemon, port: daemon.proxy.listeners.entries[0]?.port ?? 0, stop }
}

function configText(folder: string, upstreamPort: number): string {
  return `
listeners: [{ address: 127.0.0.1, port: 0 }]
upstreams: { servers: ['127.0.0.1:${upstreamPort}'], timeout: ${TIMEOUT_MS}ms, attempts: ${ATTEMPTS} }
policies: { paths: ['${join(folder, 'policies.yaml')}'], watch: false }
endpoints: { files: ['${join(folder, 'endpoints.yaml')}'] }
dns:
  min-ttl: ${MIN_TTL}s
  max-ttl: ${MAX_TTL}s
  # No entry expires during the run, so that a wrongly taught address is found at its end.
  grace-after-ttl: 1h
  protected-prefixes: [${PROTECTED.map((prefix) => `'${prefix}'`).join(', ')}]
unknown-clients: { wait: 0s }
limits: { pairs: 50000, names-per-wildcard: 50000, names-per-address: 50000, addresses-per-name: 50000, udp-message: ${UDP_MESSAGE_MAX} }
`
}
