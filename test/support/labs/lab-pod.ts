// The topology that most kernel tests and the demo use:
//
//   pod1 eth0 <-- veth --> lxc1 \
//   pod2 eth0 <-- veth --> lxc2 - node - wan0 <-- veth --> eth0 internet
//
// namegate runs in `node`, which forwards. The internet has a name server (DNS_4, DNS_6), a second one that no client should ask
// (OTHER_DNS_4), and web servers on every address of WEB_4 and WEB_6 (AnyIP: local routes).

import { fileURLToPath } from 'node:url'
import { Lab, type Host } from './lab.ts'
import type { LabProcess } from './lab-process.ts'
import type { Zones } from '../peers/zones.ts'
import { programArgs } from './program.ts'

export const DNS_4 = '192.0.2.53'
export const DNS_6 = '2001:db8:53::53'
export const OTHER_DNS_4 = '192.0.2.54'
/** Every address of this prefix answers on the web server's ports. */
export const WEB_4 = '198.18.0.0/15'
export const WEB_6 = '2001:db8:80::/48'

export interface Pod {
  readonly host: Host
  /** The host side of its veth, in `node`. */
  readonly interface: string
  readonly address4: string
  readonly address6: string
  /** The node's address for this pod. namegate listens there in explicit mode. */
  readonly gateway4: string
  readonly gateway6: string
}

export interface PodLab {
  readonly lab: Lab
  readonly node: Host
  readonly internet: Host
  readonly pods: readonly Pod[]
  startNameServer(zones: Zones): Promise<LabProcess>
  startWebServer(ports?: readonly number[]): Promise<LabProcess>
  close(): Promise<void>
}

export function podLab(options: { readonly pods?: number } = {}): PodLab {
  const lab = new Lab()
  const node = lab.addHost('node')
  node.sysctl('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
  const internet = addInternet(lab, node)
  const pods = Array.from({ length: options.pods ?? 1 }, (_, i) => addPod(lab, node, i + 1))
  return {
    lab,
    node,
    internet,
    pods,
    startNameServer: async (zones) => {
      const addresses = [DNS_4, OTHER_DNS_4, DNS_6].join(',')
      return await startHelper(internet, 'nameserver.ts', [addresses, '53', JSON.stringify(zones)])
    },
    startWebServer: async (ports = [80]) => {
      return await startHelper(internet, 'webserver.ts', [ports.join(',')])
    },
    close: async () => await lab.close(),
  }
}

export function addInternet(lab: Lab, node: Host): Host {
  const internet = lab.addHost('internet')
  lab.link(
    { host: node, interface: 'wan0', addresses: ['192.0.2.1/24', '2001:db8:53::1/64'] },
    {
      host: internet,
      interface: 'eth0',
      addresses: [`${DNS_4}/24`, `${OTHER_DNS_4}/24`, `${DNS_6}/64`],
    },
  )
  internet.ipBatch(
    'route add default via 192.0.2.1',
    'route add default via 2001:db8:53::1',
    `route add local ${WEB_4} dev lo`,
    `route add local ${WEB_6} dev lo`,
  )
  node.ipBatch(`route add default via ${DNS_4}`, `route add default via ${DNS_6}`)
  return internet
}

function addPod(lab: Lab, node: Host, number: number): Pod {
  const host = lab.addHost(`pod${number}`)
  const pod: Pod = {
    host,
    interface: `lxc${number}`,
    address4: `10.20.${number}.2`,
    address6: `fd20:${number}::2`,
    gateway4: `10.20.${number}.1`,
    gateway6: `fd20:${number}::1`,
  }
  lab.link(
    {
      host: node,
      interface: pod.interface,
      addresses: [`${pod.gateway4}/24`, `${pod.gateway6}/64`],
    },
    { host, interface: 'eth0', addresses: [`${pod.address4}/24`, `${pod.address6}/64`] },
  )
  host.ipBatch(`route add default via ${pod.gateway4}`, `route add default via ${pod.gateway6}`)
  return pod
}

/** Starts a helper of this folder as a process inside a host. Each helper prints `ready` once it serves. */
export async function startHelper(
  host: Host,
  file: string,
  args: readonly string[],
): Promise<LabProcess> {
  const helper = startHelperNow(host, file, args)
  await helper.untilOutput(/^ready$/m)
  return helper
}

/** Starts a helper without waiting. */
export function startHelperNow(host: Host, file: string, args: readonly string[]): LabProcess {
  const path = fileURLToPath(new URL(`../peers/${file}`, import.meta.url))
  return host.start(process.execPath, programArgs(path, ...args))
}
