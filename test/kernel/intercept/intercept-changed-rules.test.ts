// Reports of changed rules are only about namegate's interception tables. Rules of other programs and of namegate's nftables datapath cause
// no check.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { isBuilt, loadConntrack, loadPosix } from '../../../src/native/native.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { until } from '../../support/peers/client.ts'

const skip = canUseLab() ?? (isBuilt('conntrack') ? false : 'the native part is not built')
const OURS = 'namegate_intercept'

test(
  'rulesChanged reports every change of tables of one name, and none of others',
  { skip },
  () => {
    assert.equal(loadPosix().unshareNetwork(), 0)
    const conntrack = loadConntrack()
    const fd = conntrack.rulesWatch()
    assert.ok(fd >= 0)
    const nft = (script: string): void => void execFileSync('nft', ['-f', '-'], { input: script })
    const changed = (): number => conntrack.rulesChanged(fd, OURS)
    assert.equal(changed(), 0)

    const ours: readonly string[] = [
      `add table inet ${OURS}`,
      `add table bridge ${OURS}`,
      `add chain inet ${OURS} queries { type filter hook prerouting priority 0; }`,
      `add set inet ${OURS} s { type ifname; }`,
      `add element inet ${OURS} s { "lo" }`,
      `add rule inet ${OURS} queries iifname @s accept`,
      `flush chain inet ${OURS} queries`,
      `flush set inet ${OURS} s`,
      `delete table bridge ${OURS}`,
      'flush ruleset',
    ]
    for (const script of ours) {
      const generation = conntrack.rulesGeneration()
      nft(script)
      assert.ok(conntrack.rulesGeneration() > generation, `${script}: a new generation`)
      assert.equal(changed(), 1, script)
      assert.equal(changed(), 0, `${script}: reported once`)
      assert.equal(conntrack.rulesGeneration(), conntrack.rulesGeneration())
    }

    const elements = Array.from({ length: 100 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
    const others: readonly string[] = [
      `add table ip ${OURS}2; add table ip namegate; add table ip n`,
      'add set ip namegate exact4 { type ipv4_addr; }',
      `add element ip namegate exact4 { ${elements.join(', ')} }`,
      'add chain ip n c { type filter hook input priority 0; }; add rule ip n c tcp dport 53 accept',
      'flush ruleset',
    ]
    for (const script of others) {
      nft(script)
      assert.equal(changed(), 0, script.slice(0, 80))
    }
    nft(`add table ip n; add table inet ${OURS}; add table ip o`)
    assert.equal(changed(), 1, 'one of ours among others')
    conntrack.ctClose(fd)
  },
)

test('a watch continues after the kernel dropped reports', { skip }, async () => {
  assert.equal(loadPosix().unshareNetwork(), 0)
  const [conntrack, posix] = [loadConntrack(), loadPosix()]
  const fd = conntrack.rulesWatch()
  const heard: number[] = []
  const watch = posix.linkWatch(fd, () => heard.push(conntrack.rulesChanged(fd, OURS)))
  assert.equal(typeof watch, 'object')
  const nft = (script: string): void => void execFileSync('nft', ['-f', '-'], { input: script })
  try {
    const rules = Array.from(
      { length: 5000 },
      (_, i) => `add rule ip n c tcp dport ${i + 1} accept`,
    )
    nft(`add table ip n\nadd chain ip n c\n${rules.join('\n')}`)
    // The kernel dropped reports, so one may be about ours.
    await until('the watch reports a change', () => heard.includes(1))
    heard.length = 0
    nft(`add table ip ${OURS}`)
    await until('the watch reports ours', () => heard.includes(1))
  } finally {
    if (typeof watch === 'object') posix.linkUnwatch(watch)
    conntrack.ctClose(fd)
  }
})
