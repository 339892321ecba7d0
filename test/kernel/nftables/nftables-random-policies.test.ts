// Random policies (test/support/models/random-policies.ts) judged by the kernel's nftables rules, with packets on a real interface.

import { describe, test } from 'node:test'
import { makeNftablesBench, nftablesMaker } from '../../contract/nftables-bench.ts'
import { DEFAULTS, judgeMany, policiesOr, SEED } from '../../support/models/random-policies.ts'

/** Each packet passes the whole kernel, so there are fewer than with programs that a system call can run. */
const POLICIES = policiesOr(210)

describe('random policies over nftables', { skip: nftablesMaker.unavailable ?? false }, () => {
  for (const [i, defaultEgress] of DEFAULTS.entries()) {
    test(`are enforced by the kernel as the naive policy decides, default-egress ${defaultEgress}`, (t) => {
      const bench = makeNftablesBench({}, { isConfirmed: true })
      t.diagnostic(judgeMany(bench, SEED + i, defaultEgress, Math.ceil(POLICIES / DEFAULTS.length)))
    })
  }
})
