import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foreignRule, parseChains, parseInForce } from '../../src/intercept/ruleset.ts'
import { mkPlan } from '../support/labs/intercept-plans.ts'

const TPROXY = mkPlan({ listeners: '{ port: 10053, mode: tproxy }' })
const REDIRECT = mkPlan({ listeners: '{ port: 5300, mode: redirect }' })

test('parseInForce reads the comment, the sets, and the counters of both tables together', () => {
  const inet = items(
    { metainfo: { version: '1.0.6' } },
    { counter: { family: 'inet', name: 'taken', packets: 3 } },
    { counter: { family: 'inet', name: 'somebody', packets: 9 } },
    { set: { family: 'inet', name: 'interfaces0', type: 'ifname', elem: ['b', 'a'] } },
    { set: { family: 'inet', name: 'servers4', type: 'ipv4_addr', elem: ['192.0.2.1'] } },
    { rule: { family: 'inet', chain: 'queries', comment: 'no' } },
    { rule: { family: 'inet', chain: 'about', comment: 'plan 1' } },
  )
  const bridge = items(
    { counter: { family: 'bridge', name: 'bridged', packets: 2 } },
    { set: { family: 'bridge', name: 'interfaces0', type: 'ifname' } },
  )
  const { parts, damage, ...rest } = parseInForce(inet, bridge)
  assert.deepEqual(
    [...parts.keys()],
    ['set inet servers4', 'chain inet queries', 'chain inet about'],
  )
  assert.deepEqual(damage, ['nft chain inet namegate_intercept seals'])
  assert.deepEqual(rest, {
    about: 'plan 1',
    sets: new Map([
      ['inet interfaces0', ['a', 'b']],
      ['bridge interfaces0', []],
    ]),
    packets: { taken: 3, forged: 0, unheard: 0, own: 0, guarded: 0, bridged: 2 },
  })
  assert.equal(parseInForce(items()).about, '', 'emptied by another program')
})

test('parseChains picks the tables to read, and those that drop incoming packets', () => {
  const chain = (
    family: string,
    table: string,
    type: string,
    hook: string,
    prio: number,
    policy = 'accept',
  ) => ({
    chain: { family, table, name: 'c', type, hook, prio, policy },
  })
  const json = items(
    chain('inet', 'namegate_intercept', 'filter', 'prerouting', -300),
    chain('ip', 'mangle', 'filter', 'prerouting', -150),
    chain('ip', 'nat', 'nat', 'prerouting', -100),
    chain('ip', 'nat', 'nat', 'output', -100),
    chain('inet', 'early', 'nat', 'output', -110),
    chain('bridge', 'b', 'filter', 'prerouting', -300),
    chain('inet', 'firewall', 'filter', 'input', 0, 'drop'),
    { chain: { family: 'ip', table: 'mangle', name: 'regular' } },
  )
  const closed = ['inet firewall']
  assert.deepEqual(parseChains(json, TPROXY), { suspects: [['ip', 'mangle']], closed })
  assert.deepEqual(parseChains(json, REDIRECT), { suspects: [['inet', 'early']], closed })
})

test('foreignRule names rules of others that redirect DNS, and no others', () => {
  const udp53 = port(53)
  const rows: readonly (readonly [
    expressions: readonly object[],
    reason: RegExp | undefined,
    why: string,
  ])[] = [
    [
      [udp53, { tproxy: { port: 15001 } }],
      /"ip t c" sends port 53 elsewhere \(tproxy\): remove it/,
      'nft',
    ],
    [
      [udp53, { counter: {} }, { xt: { type: 'target', name: 'TPROXY' } }],
      /\(tproxy\)/,
      'iptables',
    ],
    [[port({ set: [80, { range: [50, 60] }] }), { tproxy: {} }], /tproxy/, 'a range in a set'],
    [[port('@ports'), { tproxy: {} }], /tproxy/, 'a set that can contain it'],
    [[port(80), { tproxy: {} }], undefined, 'another port'],
    [[port({ range: [54, 60] }), { tproxy: {} }], undefined, 'another range'],
    [[l4('udp'), { tproxy: {} }], /tproxy/, 'all of UDP'],
    [
      [{ match: { left: { meta: { key: 'mark' } }, right: 512 } }, { tproxy: {} }],
      undefined,
      'a mark before',
    ],
    [[udp53, { accept: null }], undefined, 'it redirects nothing'],
    [[udp53, { redirect: { port: 5 } }], undefined, 'untracked packets meet no nat'],
  ]
  for (const [expr, reason, why] of rows) {
    const found = foreignRule(
      items({ rule: { family: 'ip', table: 't', chain: 'c', expr } }),
      TPROXY,
    )
    if (reason === undefined) assert.equal(found, undefined, why)
    else assert.match(found ?? '', reason, why)
  }
  const nat = items({ rule: { family: 'ip', table: 't', chain: 'c', expr: [udp53, { dnat: {} }] } })
  assert.match(foreignRule(nat, REDIRECT) ?? '', /\(dnat\)/)
})

function items(...list: readonly object[]): string {
  return JSON.stringify({ nftables: list })
}

function port(right: unknown): object {
  return { match: { op: '==', left: { payload: { protocol: 'udp', field: 'dport' } }, right } }
}

function l4(right: string): object {
  return { match: { op: '==', left: { meta: { key: 'l4proto' } }, right } }
}
