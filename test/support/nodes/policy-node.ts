// A node with endpoints a and b and its own addresses, and a table of packets with their verdicts. For tests of the meaning of policies.

import assert from 'node:assert/strict'
import { mkEndpoint, mkPolicies, Node, type NodeOptions } from './node.ts'

const A = ['10.200.0.1', 'fd00:200::1']

export function mkPolicyNode(specs: readonly string[], options: NodeOptions = {}): Node {
  const node = new Node({ nodeAddresses: ['192.0.2.9', '2001:db8::9'], ...options })
  node.setEndpoints([
    mkEndpoint('a', A, ['k8s:app=a']),
    mkEndpoint(
      'b',
      ['10.200.0.2', 'fd00:200::2'],
      ['k8s:app=b', 'k8s:io.kubernetes.pod.namespace=prod'],
    ),
  ])
  node.setPolicies(mkPolicies(...specs))
  return node
}

/** `443` or `53/17`, and each peer with the verdict on a packet from endpoint a. */
export type Packets = readonly (readonly [
  peer: string,
  verdict: 'allow' | 'deny' | 'audit',
  port?: string,
])[]

export function checkPackets(node: Node, packets: Packets, from = 'a'): void {
  for (const [peer, verdict, to = '443'] of packets) {
    const [port, protocol = 6] = to.split('/').map(Number)
    assert.equal(node.verdict(from, peer, port, protocol), verdict, `${from} to ${peer} ${to}`)
  }
  assert.deepEqual(node.differences(), [])
}

const CLASSES = [
  '192.0.2.9',
  '10.200.0.2',
  '203.0.113.1',
  '2001:db8::1',
  '2001:db8::9',
  'fd00:200::2',
]

export function classes(...allowed: readonly number[]): Packets {
  return CLASSES.map((peer, i) => [peer, allowed.includes(i) ? 'allow' : 'deny'])
}
