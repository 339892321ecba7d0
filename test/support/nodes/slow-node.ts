// A node with policy and endpoints in force. From then on, a commit ends when the test calls `slow.end()`.

import assert from 'node:assert/strict'
import { mkEndpoint, mkPolicies, Node, type NodeOptions } from './node.ts'
import { SlowRecorder } from '../models/slow-recorder.ts'
import { validateCore } from '../models/validate-core.ts'

export const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

/** Puts policy and endpoints in force. From then on, commits wait for `slow.end()`. */
export function mkSlow(
  options: NodeOptions = {},
  policy = WILD,
  labels: { readonly a: readonly string[]; readonly b: readonly string[] } = { a: [], b: [] },
): { node: Node; slow: SlowRecorder } {
  const slow = new SlowRecorder()
  slow.slow = false
  const node = new Node({ ...options, recorder: slow })
  node.setEndpoints([
    mkEndpoint('a', ['10.0.0.1'], labels.a),
    mkEndpoint('b', ['10.0.0.2'], labels.b),
  ])
  node.setPolicies(mkPolicies(policy))
  slow.slow = true
  slow.takeWrites()
  return { node, slow }
}

export function learn(node: Node, name: string, address: string, endpoint = 'a'): number {
  const [row = 0] = node.learn(node.endpoint(endpoint).id, name, [address])
  return row
}

/** Ends pending commits. Everything must then be as wanted, and every count right. */
export function finish(node: Node, slow: SlowRecorder): void {
  slow.drain()
  node.core.committer.commit()
  slow.drain()
  assert.deepEqual(node.differences(), [])
  node.core.labelSets.collect()
  validateCore(node.core)
}
