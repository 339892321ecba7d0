// ClusterNetworkPolicies beside other policies, judged by the kernel's eBPF programs and nftables rules. Every verdict is the one that the
// text of the API gives (test/support/models/naive-policy.ts). NAMEGATE_SEED=n sets the first seed, NAMEGATE_POLICIES=n the number of
// policies.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ebpfMaker, makeEbpfBench } from '../../contract/ebpf-bench.ts'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import type { Bench } from '../../contract/bench.ts'
import { CASE_S, KernelNode } from '../../support/nodes/kernel-node.ts'
import { randomPolicy } from '../../support/models/random-policy.ts'
import { DEFAULTS, differences, policiesOr, SEED } from '../../support/models/random-policies.ts'
import { randomTierPolicy } from '../../support/models/random-tiers.ts'
import { Random } from '../../support/models/random.ts'

const TOGETHER = 4
const PROBES = 20

function judgeTiers(
  bench: Bench,
  seed: number,
  egress: (typeof DEFAULTS)[number],
  count: number,
): string {
  let probed = 0
  try {
    const run = new KernelNode(bench, new Random(seed), egress, 4096, true)
    const { random } = run
    for (let n = 0; n < count; n++) {
      run.pass(CASE_S)
      for (let i = random.below(4); i > 0; i--) run.teach()
      const fresh = random.oneIn(3) ? randomPolicy(random, n) : randomTierPolicy(random, n)
      const policies = [...run.inForce.slice(1 - TOGETHER), fresh]
      const probes = run.probes(policies, PROBES)
      run.change(policies, () => undefined)
      assert.equal(run.core.committer.refused, 0, 'the kernel took every entry')
      assert.deepEqual(differences(run, probes), [], `case ${n}`)
      probed += probes.length
    }
  } finally {
    bench.close()
  }
  return `seed ${seed}: ${count} policies, ${probed} probes`
}

const KERNELS = [
  { maker: ebpfMaker, make: () => makeEbpfBench(), count: 600 },
  { maker: nftablesMaker, make: () => makeNftablesBench({}, { isConfirmed: true }), count: 60 },
]

for (const { maker, make, count } of KERNELS) {
  describe(`random tiers over ${maker.name}`, { skip: maker.unavailable ?? false }, () => {
    for (const [i, egress] of DEFAULTS.entries()) {
      test(`are enforced by the kernel as the API says, default-egress ${egress}`, (t) => {
        const share = Math.ceil(policiesOr(count) / DEFAULTS.length)
        t.diagnostic(judgeTiers(make(), SEED + i, egress, share))
      })
    }
  })
}
