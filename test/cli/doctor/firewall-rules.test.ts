// Which rules in an output of nft touch DNS or namegate's mark.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foreignRuleset } from '../../../src/cli/doctor/firewall-rules.ts'

const MARK = 0x4e47

const port = (right: unknown, field = 'dport', op = '=='): unknown => ({
  match: { op, left: { payload: { protocol: 'udp', field } }, right },
})
const mark = { meta: { key: 'mark' } }

const ROWS: readonly (readonly [
  expr: readonly unknown[],
  effect: string | undefined,
  why: string,
])[] = [
  [[port(53), { redirect: { port: 5353 } }], 'turns', 'redirect'],
  [[port({ set: [53, 80] }), { dnat: { addr: '192.0.2.1' } }], 'turns', 'a set with port 53'],
  [[port({ range: [1, 100] }), { tproxy: {} }], 'turns', 'a range with port 53'],
  [[port(53), { xt: { type: 'target', name: 'DNAT' } }], 'turns', 'a rule of iptables-nft'],
  [[port(53), { drop: null }], 'drops', 'drop'],
  [[port(53, 'sport'), { reject: {} }], 'drops', 'answers are dropped'],
  [[port(53), { accept: null }], undefined, 'accepted'],
  [[port(443), { drop: null }], undefined, 'another port'],
  [[port(53, 'dport', '!='), { drop: null }], undefined, 'all other ports'],
  [[{ drop: null }], undefined, 'names no port'],
  [[{ match: { op: '==', left: mark, right: MARK } }], 'marks', 'matches the mark'],
  [[{ match: { op: '==', left: mark, right: { set: [1, MARK] } } }], 'marks', 'a set with it'],
  [[{ match: { op: '!=', left: mark, right: MARK } }], undefined, 'every other mark'],
  [[{ match: { op: '==', left: mark, right: 1 } }], undefined, 'another mark'],
  [
    [{ match: { op: '==', left: { '&': [mark, 0xff00] }, right: 0x4e00 } }],
    'marks',
    'bits that the mark has',
  ],
  [
    [{ match: { op: '==', left: { '&': [mark, 0xff00] }, right: 0x4000 } }],
    undefined,
    'bits that the mark does not have',
  ],
  [[{ mangle: { key: mark, value: MARK } }], 'marks', 'sets the mark'],
  [[{ mangle: { key: { ct: { key: 'mark' } }, value: MARK } }], undefined, 'of a connection'],
]

for (const [expr, effect, why] of ROWS) {
  test(`foreignRuleset finds ${effect ?? 'nothing'}: ${why}`, () => {
    const rule = { family: 'inet', table: 'x', chain: 'c', handle: 3, expr }
    const { rules } = foreignRuleset(JSON.stringify({ nftables: [{ rule }] }), MARK)
    assert.deepEqual(
      rules.map((each) => [each.effect, each.chain, each.handle]),
      effect === undefined ? [] : [[effect, 'inet x c', '3']],
    )
  })
}

test('foreignRuleset leaves out the tables of namegate', () => {
  for (const table of ['namegate', 'namegate_intercept']) {
    const rule = { family: 'inet', table, chain: 'c', handle: 3, expr: [port(53), { drop: null }] }
    const chain = { family: 'inet', table, name: 'i', hook: 'input', policy: 'drop' }
    const found = foreignRuleset(JSON.stringify({ nftables: [{ rule }, { chain }] }), MARK)
    assert.deepEqual(found, { rules: [], closed: [] }, table)
  }
})

test('foreignRuleset finds chains that drop incoming packets by default', () => {
  const chain = { family: 'inet', table: 'filter', name: 'input', hook: 'input', policy: 'drop' }
  const open = { ...chain, name: 'open', policy: 'accept' }
  const { closed } = foreignRuleset(
    JSON.stringify({ nftables: [{ chain }, { chain: open }] }),
    MARK,
  )
  assert.deepEqual(closed, ['inet filter input'])
})
