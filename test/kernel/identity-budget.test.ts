// At the bound of dynamic identities, judged by the eBPF programs of the kernel: a name that is allowed answers with an address
// inside a prefix that is denied, and there is no number left for both labels.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Prefix } from '../../src/core/ip.ts'
import { TCP } from '../../src/core/protocol.ts'
import { ebpfMaker, makeEbpfBench } from '../contract/ebpf-bench.ts'
import { KernelNode, packetTo } from '../support/kernel-node.ts'
import { hashedName, mkPolicies, prefixOf } from '../support/node.ts'
import { Random } from '../support/random.ts'

const EGRESS = `
egress:
- toFQDNs: [ { matchPattern: "*.a.test" } ]
- toCIDR: [ 192.0.2.0/24 ]
- toEntities: [ world ]
  toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]
egressDeny:
- toCIDR: [ 198.51.100.0/24 ]
`

describe('at the bound of dynamic identities', { skip: ebpfMaker.unavailable ?? false }, () => {
  test('the kernel drops what is denied by prefix though its name is allowed', () => {
    const bench = makeEbpfBench()
    try {
      const node = new KernelNode(bench, new Random(1), 'deny', 1)
      node.change(mkPolicies(EGRESS), () => undefined)
      const [from] = [...node.endpoints.registry]
      assert.ok(from !== undefined)
      const learn = (name: string, { family, octets }: Prefix): void => {
        node.core.names.begin()
        const row = node.core.names.learn(from.id, hashedName(name), family, octets, 0, 300)
        assert.notEqual(row, 0)
        node.core.committer.commit()
      }
      const judge = (peer: Prefix, port = 443): string =>
        bench.judge(from.id, 'from', packetTo(from, { peer, protocol: TCP, port }))
      const rows = [
        ['first.a.test', '192.0.2.7', 8080, 'pass', false, 'takes the one number there is'],
        ['www.a.test', '198.51.100.7', 8080, 'drop', true, 'denied by its prefix'],
        ['www.a.test', '198.51.100.7', 443, 'drop', true, 'although world is allowed there'],
        [
          'plain.a.test',
          '203.0.113.7',
          8080,
          'pass',
          true,
          'its labels were foreseen: no number needed',
        ],
      ] as const
      for (const [name, address, port, verdict, isSpent, reason] of rows) {
        const { budget } = node.core.allocator
        assert.equal(budget.used === 1, isSpent, `before ${name}`)
        learn(name, prefixOf(address))
        assert.equal(judge(prefixOf(address), port), verdict, reason)
      }
      assert.equal(node.core.ipcache.degraded.size, 1)
      assert.ok(node.core.allocator.fallbacks > 0)
    } finally {
      bench.close()
    }
  })
})
