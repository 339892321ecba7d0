// Pods behind a bridge whose gateway is the node, as container runtimes make them:
//
//   pod1 eth0 <-- veth --> veth1 \
//   pod2 eth0 <-- veth --> veth2 - br0 - node - wan0 <-- veth --> eth0 internet
//
// All pods are in one subnet, so they reach each other without the node. lab-pod.ts describes the internet.

import { Lab, type Host } from './lab.ts'
import { addInternet } from './lab-pod.ts'

export interface BridgePod {
  readonly host: Host
  /** The port of the bridge, in `node`. */
  readonly interface: string
  readonly address4: string
  readonly address6: string
}

export interface BridgeLab {
  readonly lab: Lab
  readonly node: Host
  readonly internet: Host
  readonly pods: readonly BridgePod[]
  close(): Promise<void>
}

export const BRIDGE = 'br0'
export const BRIDGE_GATEWAY_4 = '10.30.0.1'
export const BRIDGE_GATEWAY_6 = 'fd30::1'

export function bridgeLab(options: { readonly pods?: number } = {}): BridgeLab {
  const lab = new Lab()
  const node = lab.addHost('node')
  node.sysctl('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
  const internet = addInternet(lab, node)
  node.ipBatch(
    `link add ${BRIDGE} type bridge forward_delay 0`,
    `address add ${BRIDGE_GATEWAY_4}/24 dev ${BRIDGE}`,
    `address add ${BRIDGE_GATEWAY_6}/64 dev ${BRIDGE} nodad`,
    `link set ${BRIDGE} up`,
  )
  const pods = Array.from({ length: options.pods ?? 2 }, (_, i) => addPort(lab, node, i + 1))
  return { lab, node, internet, pods, close: async () => await lab.close() }
}

function addPort(lab: Lab, node: Host, number: number): BridgePod {
  const host = lab.addHost(`pod${number}`)
  const pod: BridgePod = {
    host,
    interface: `veth${number}`,
    address4: `10.30.0.${number + 1}`,
    address6: `fd30::${number + 1}`,
  }
  lab.link(
    { host: node, interface: pod.interface, addresses: [] },
    { host, interface: 'eth0', addresses: [`${pod.address4}/24`, `${pod.address6}/64`] },
  )
  node.ip('link', 'set', pod.interface, 'master', BRIDGE)
  host.ipBatch(
    `route add default via ${BRIDGE_GATEWAY_4}`,
    `route add default via ${BRIDGE_GATEWAY_6}`,
  )
  return pod
}
