// Random policies (test/support/models/random-policies.ts) judged by the nftables rules of the kernel, with packets that really come in.

import { describe, test } from 'node:test'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import { DEFAULTS, judgeMany, policiesOr, SEED } from '../../support/models/random-policies.ts'

/** Each packet passes a kernel's whole way, so fewer than with programs that can be asked. */
const POLICIES = policiesOr(210)

describe('random policies over nftables', { skip: nftablesMaker.unavailable ?? false }, () => {
  for (const [i, defaultEgress] of DEFAULTS.entries()) {
    test(`are enforced by the kernel as a naive reading says, default-egress ${defaultEgress}`, (t) => {
      const bench = makeNftablesBench({}, { isConfirmed: true })
      t.diagnostic(judgeMany(bench, SEED + i, defaultEgress, Math.ceil(POLICIES / DEFAULTS.length)))
    })
  }
})
