// Random policies (test/support/models/random-policies.ts) judged by the kernel's eBPF programs. A second test shows that the check notices
// a wrong entry.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import {
  encodePolicyKey,
  encodePolicyValue,
  MAP_SHAPES,
} from '../../../src/datapath/ebpf/maps/layout.ts'
import {
  PREFIX_KEY_SIZE,
  PREFIX_VALUE_SIZE,
  type PrefixBatch,
} from '../../../src/datapath/prefix-batch.ts'
import type { PolicyEntry } from '../../../src/datapath/entries.ts'
import { ebpfMaker, makeEbpfBench, type EbpfBench } from '../../contract/ebpf-bench.ts'
import { KernelNode } from '../../support/nodes/kernel-node.ts'
import { mkPolicies } from '../../support/nodes/node.ts'
import { Random } from '../../support/models/random.ts'
import {
  DEFAULTS,
  differences,
  judgeMany,
  policiesOr,
  SEED,
} from '../../support/models/random-policies.ts'

const POLICIES = policiesOr(2000)

interface Octets {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

function encoded(entry: PolicyEntry): Octets {
  const { key: keySize, value: valueSize } = MAP_SHAPES.ng_policy
  const octets = { key: new Uint8Array(keySize), value: new Uint8Array(valueSize) }
  encodePolicyKey(entry, octets.key, 0)
  encodePolicyValue(entry, octets.value, 0)
  return octets
}

function placeOf(prefixes: PrefixBatch, prefix: string): Octets {
  const at = Array.from({ length: prefixes.count }, (_, i) => prefixes.format(i)).indexOf(prefix)
  assert.ok(at >= 0, `${prefix} is in the kernel's map`)
  return {
    key: prefixes.keys.slice(at * PREFIX_KEY_SIZE, (at + 1) * PREFIX_KEY_SIZE),
    value: prefixes.values.slice(at * PREFIX_VALUE_SIZE, (at + 1) * PREFIX_VALUE_SIZE),
  }
}

/** Sets an entry of a pinned map with bpftool, or removes it if there is no value. namegate does not notice. */
function writeEntry(bench: EbpfBench, map: string, key: Uint8Array, value?: Uint8Array): void {
  const hex = (octets: Uint8Array): string[] => [
    'hex',
    ...[...octets].map((octet) => octet.toString(16)),
  ]
  const pin = join(pinDirectory(bench.pinPath), map)
  const rest = value === undefined ? [] : ['value', ...hex(value)]
  const verb = value === undefined ? 'delete' : 'update'
  execFileSync('bpftool', ['map', verb, 'pinned', pin, 'key', ...hex(key), ...rest])
}

describe('random policies', { skip: ebpfMaker.unavailable ?? false }, () => {
  for (const [i, defaultEgress] of DEFAULTS.entries()) {
    test(`are enforced by the kernel as the naive policy decides, default-egress ${defaultEgress}`, (t) => {
      const share = Math.ceil(POLICIES / DEFAULTS.length)
      t.diagnostic(judgeMany(makeEbpfBench(), SEED + i, defaultEgress, share))
    })
  }

  test('differ from a map in which another program changed or removed one entry', () => {
    const bench = makeEbpfBench()
    try {
      const run = new KernelNode(bench, new Random(SEED), 'deny')
      const egress =
        "egress: [{ toCIDR: [198.18.0.0/28], toPorts: [{ ports: [{ port: '443', protocol: TCP }] }] }]"
      const policies = mkPolicies(egress)
      run.change(policies, () => undefined)
      const probes = run.probes(policies, 2000)
      assert.deepEqual(differences(run, probes), [])
      const { policies: entries, prefixes } = bench.datapath.dump()
      const entry = entries.find(({ port }) => port === 443)
      assert.ok(entry !== undefined)
      const own = encoded(entry)
      const flipped = encoded({ ...entry, verdict: 'deny' })
      const place = placeOf(prefixes, '198.18.0.0/28')
      for (const { map, right, wrong } of [
        { map: 'ng_policy', right: own, wrong: flipped },
        { map: 'ng_policy', right: own, wrong: undefined },
        { map: 'ng_ipcache', right: place, wrong: undefined },
      ]) {
        writeEntry(bench, map, right.key, wrong?.value)
        const found = differences(run, probes)
        assert.ok(found.length > 0, `${map} is noticed`)
        assert.ok(found.every((line) => line.endsWith('443/6: drop, not allow')))
        writeEntry(bench, map, right.key, right.value)
        assert.deepEqual(differences(run, probes), [])
      }
    } finally {
      bench.close()
    }
  })
})
