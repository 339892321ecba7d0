// A site on a machine with a systemd of its own: the shipped units and a configuration of deploy/systemd, a pod, and the servers that the
// configuration names. The network is a unit of the machine, so it appears only when systemd starts the unit, and a reboot removes it.
// The pod and the internet stay.
//
//   pod eth0 <-- veth --> lxc1 - machine - wan0 <-- veth --> eth0 internet

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Lab, type Host } from './lab.ts'
import { WEB_4, WEB_6 } from './lab-pod.ts'
import { SystemdMachine } from './systemd-machine.ts'

export const NAMEGATE = '/opt/namegate/bin/namegate'
export const CONFIG = '/etc/namegate/namegate.yaml'
export const POLICY_FILE = '/etc/namegate/policies/site.yaml'
export const SERVER = '9.9.9.9'
const UNITS = '/etc/systemd/system'
const SHIPPED = 'deploy/systemd'
/** TCP ports. The names of the policy lead only to the first. */
export const [ALLOWED_PORT, DENIED_PORT] = [7001, 7009]

/** A policy that lets the pod ask names under a suffix and connect to them. */
export function policyFor(suffix: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: site }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '**.${suffix}' }] } }]
    - toFQDNs: [{ matchPattern: '**.${suffix}' }]
      toPorts: [{ ports: [{ port: '${ALLOWED_PORT}', protocol: TCP }] }]
`
}

const ENDPOINTS = `endpoints:
  - { name: pod, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }
`

/** Like ifupdown or a container runtime, it starts after network-pre.target. */
const NETWORK_UNIT = `[Unit]
DefaultDependencies=no
Wants=network-pre.target network.target
After=network-pre.target
Before=network.target network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/site/network.sh
[Install]
WantedBy=sysinit.target
`

const SYSCTLS = [
  'net.ipv4.ip_forward=1',
  'net.ipv6.conf.all.forwarding=1',
  'net.ipv4.conf.all.rp_filter=0',
  'net.ipv4.conf.default.rp_filter=0',
  'net.ipv6.conf.all.accept_dad=0',
  'net.ipv6.conf.default.accept_dad=0',
]

interface Link {
  readonly name: string
  readonly peer: Host
  readonly near: readonly [string, string]
  readonly far: readonly [string, string]
}

/** Commands that make a veth pair and the peer's default routes over it. */
function linkScript({ name, peer, near, far }: Link): string {
  const inPeer = `ip -n ${peer.namespace}`
  return [
    // Removes the link from before the reboot.
    `${inPeer} link del eth0 2>/dev/null || :`,
    `ip link add ${name} type veth peer name eth0 netns ${peer.namespace}`,
    `ip address add ${near[0]} dev ${name}`,
    `ip address add ${near[1]} dev ${name} nodad`,
    `${inPeer} address add ${far[0]} dev eth0`,
    `${inPeer} address add ${far[1]} dev eth0 nodad`,
    `ip link set ${name} up`,
    `${inPeer} link set eth0 up`,
    ...near.map((address) => `${inPeer} route add default via ${address.replace(/\/.*/, '')}`),
  ].join('\n')
}

export interface SystemdSiteOptions {
  /** The configuration to use, with the drop-ins of the same name. */
  readonly mode: 'tproxy' | 'explicit' | 'dns-only'
  /** Replaces the configuration's `{ kind: ebpf }`. */
  readonly datapath?: string
}

export class SystemdSite {
  readonly #lab = new Lab()
  readonly internet: Host = this.#lab.addHost('internet')
  readonly pod: Host = this.#lab.addHost('pod')
  readonly machine: SystemdMachine

  constructor(options: SystemdSiteOptions) {
    for (const address of [`${SERVER}/32`, '2620:fe::fe/128']) {
      this.internet.ip('address', 'add', address, 'dev', 'lo')
    }
    this.internet.ip('route', 'add', 'local', WEB_4, 'dev', 'lo')
    this.internet.ip('-6', 'route', 'add', 'local', WEB_6, 'dev', 'lo')
    this.machine = new SystemdMachine({
      ...shippedUnits(options.mode),
      [CONFIG]: configText(options),
      '/etc/namegate/endpoints.yaml': ENDPOINTS,
      [POLICY_FILE]: policyFor('test'),
      [`${UNITS}/site-network.service`]: NETWORK_UNIT,
      '/etc/site/network.sh': this.#networkScript(),
    })
  }

  /** Boots for the first time, and brings the network up. */
  async start(): Promise<void> {
    await this.machine.boot()
    await this.machine.settled()
    await this.machine.get('systemctl', 'enable', '--now', 'site-network')
  }

  async close(): Promise<void> {
    await this.machine.close()
    await this.#lab.close()
  }

  #networkScript(): string {
    const wan = { name: 'wan0', peer: this.internet }
    const lxc = { name: 'lxc1', peer: this.pod }
    return [
      'set -eu',
      `sysctl -qw ${SYSCTLS.join(' ')}`,
      linkScript({
        ...wan,
        near: ['192.0.2.1/24', '2001:db8:53::1/64'],
        far: ['192.0.2.53/24', '2001:db8:53::53/64'],
      }),
      'ip route add default via 192.0.2.53',
      'ip route add default via 2001:db8:53::53',
      linkScript({
        ...lxc,
        near: ['10.20.1.1/24', 'fd20:1::1/64'],
        far: ['10.20.1.2/24', 'fd20:1::2/64'],
      }),
      '',
    ].join('\n')
  }
}

/** The shipped units at the paths that the first lines of namegate.service name, with the drop-ins of one mode. */
function shippedUnits(mode: string): Readonly<Record<string, string>> {
  const files = readdirSync(SHIPPED, { recursive: true, encoding: 'utf8' })
  const units = files.filter((file) => /\.(service|socket)$/.test(file))
  const dropIns = files.filter((file) => file.endsWith(`.d/${mode}.conf`))
  return Object.fromEntries(
    [...units, ...dropIns].map((file) => [
      join(UNITS, file),
      readFileSync(join(SHIPPED, file), 'utf8'),
    ]),
  )
}

function configText({ mode, datapath }: SystemdSiteOptions): string {
  const text = readFileSync(join(SHIPPED, `${mode}.yaml`), 'utf8')
  if (datapath === undefined) return text
  return text.replace(/^datapath: .*$/m, `datapath: ${datapath}`)
}
