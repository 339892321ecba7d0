// The DNS of a cluster in a lab: a pod behind the address of a service, with rules like those of kube-proxy, and NodeLocal DNSCache on the
// node.

import assert from 'node:assert/strict'
import type { Zones } from '../peers/zones.ts'
import { runIn } from './intercept-lab.ts'
import type { Host } from './lab.ts'
import { startHelper, type Pod } from './lab-pod.ts'

/** The address in deploy/kubernetes/base/resources.yaml. */
export const DNS_SERVICE = '10.96.0.10'
export const NODE_LOCAL_DNS = '169.254.20.10'

/** Starts CoreDNS in a pod. */
export async function startClusterDns(node: Host, pod: Pod, zones: Zones): Promise<void> {
  await startHelper(pod.host, 'nameserver.ts', [pod.address4, '53', JSON.stringify(zones)])
  const chains = ['output', 'prerouting'].flatMap((hook) => [
    `add chain ip services ${hook} { type nat hook ${hook} priority -100; }`,
    `add rule ip services ${hook} ip daddr ${DNS_SERVICE} dnat to ${pod.address4}`,
  ])
  addRules(node, ['add table ip services', ...chains])
}

/** Starts NodeLocal DNSCache at an address of the node. The node's rules exclude this address from connection tracking. */
export async function startNodeLocalDns(node: Host, zones: Zones): Promise<void> {
  node.ip('address', 'add', `${NODE_LOCAL_DNS}/32`, 'dev', 'lo')
  const rule = (chain: string, side: 'd' | 's'): string[] =>
    ['udp', 'tcp'].map((protocol) => {
      const port = `${protocol} ${side}port 53`
      return `add rule ip nodelocal ${chain} ip ${side}addr ${NODE_LOCAL_DNS} ${port} notrack`
    })
  addRules(node, [
    'add table ip nodelocal',
    'add chain ip nodelocal prerouting { type filter hook prerouting priority raw; }',
    'add chain ip nodelocal output { type filter hook output priority raw; }',
    ...rule('prerouting', 'd'),
    ...rule('output', 's'),
    ...rule('output', 'd'),
  ])
  await startHelper(node, 'nameserver.ts', [NODE_LOCAL_DNS, '53', JSON.stringify(zones)])
}

function addRules(node: Host, script: readonly string[]): void {
  assert.equal(runIn(node, ['nft', '-f', '-'], `${script.join('\n')}\n`).stderr, '')
}
