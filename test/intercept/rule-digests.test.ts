import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  damageOf,
  partsOf,
  digestScript,
  digestsOf,
  type Parts,
} from '../../src/intercept/rule-digests.ts'

const T = 'namegate_intercept'
type Item = Readonly<Record<string, object>>

/** The output of nft: two tables, with this number of rules in each chain. */
function listing(version = '1.0.6'): Item[] {
  return [
    { metainfo: { version } },
    { table: { family: 'inet', name: T, handle: 7 } },
    { set: { family: 'inet', name: 'servers4', type: 'ipv4_addr', elem: ['192.0.2.1'] } },
    { set: { family: 'inet', name: 'interfaces0', type: 'ifname', elem: ['lxc1'] } },
    { counter: { family: 'inet', name: 'taken', packets: 3 } },
    { chain: { family: 'inet', name: 'queries', hook: 'prerouting', prio: -300, handle: 1 } },
    rule('queries', 8, { accept: null }),
    rule('queries', 9, { drop: null }),
    { table: { family: 'bridge', name: T } },
    { chain: { family: 'bridge', name: 'between', hook: 'forward', prio: -200 } },
    { set: { family: 'inet', name: 'closing4', type: ['ipv4_addr'], timeout: 60, elem: [{}] } },
  ]
}

function rule(chain: string, handle: number, expression: object): Item {
  return { rule: { family: 'inet', table: T, chain, handle, expr: [expression] } }
}

/** The seals as nft lists them after `script`. */
function sealsIn(script: string): Parts {
  const comments = [...script.matchAll(/^add rule inet \S+ seals return comment "(.*)"$/gm)]
  return digestsOf(
    comments.map(([, comment]) => ({ rule: { family: 'inet', chain: 'seals', comment } })),
  )
}

test('damageOf is empty while only handles, counters, interfaces and elements that expire change', () => {
  const seals = sealsIn(digestScript(partsOf(listing())))
  assert.deepEqual(damageOf(partsOf(listing()), seals), [])
  const later: Item[] = listing().map((item) => {
    const { rule, set, counter } = item as Record<string, object | undefined>
    if (rule !== undefined) return { rule: { ...rule, handle: 99 } }
    if (counter !== undefined) return { counter: { ...counter, packets: 1e9 } }
    if (set !== undefined && Reflect.has(set, 'timeout')) return { set: { ...set, elem: [] } }
    const isOfInterfaces = set !== undefined && Reflect.get(set, 'type') === 'ifname'
    return isOfInterfaces ? { set: { ...set, elem: ['lxc2'] } } : item
  })
  later.push({ chain: { family: 'inet', name: 'seals' } })
  assert.deepEqual(damageOf(partsOf(later), seals), [])
})

test('damageOf names missing, fewer, changed and added rules', () => {
  const seals = sealsIn(digestScript(partsOf(listing())))
  const without = (...at: readonly number[]): Item[] => listing().filter((_, i) => !at.includes(i))
  const rows: readonly (readonly [items: Item[], damage: readonly string[], reason: string])[] = [
    [without(6, 7), [`nft chain inet ${T} queries (0 of 2 rules)`], 'flushed'],
    [without(7), [`nft chain inet ${T} queries (1 of 2 rules)`], 'one rule deleted'],
    [
      [...without(7), rule('queries', 12, { accept: null })],
      [`nft chain inet ${T} queries (changed)`],
      'another rule in its place',
    ],
    [
      [...listing(), rule('queries', 12, { accept: null })],
      [`nft chain inet ${T} queries (3 of 2 rules)`],
      'a rule of another program',
    ],
    [
      [...without(5), { chain: { family: 'inet', name: 'queries' } }],
      [`nft chain inet ${T} queries (changed)`],
      'a chain made again that no packet reaches',
    ],
    [without(2), [`nft set inet ${T} servers4`], 'a set deleted'],
    [
      without(2).concat({ set: { family: 'inet', name: 'servers4', type: 'ipv4_addr' } }),
      [`nft set inet ${T} servers4 (changed)`],
      'a set flushed',
    ],
    [without(8, 9), [`nft table bridge ${T}`], 'a table with all its chains, reported once'],
    [without(9), [`nft chain bridge ${T} between`], 'a chain deleted'],
    [
      without(1).concat({ table: { family: 'inet', name: T, flags: 'dormant' } }),
      [`nft table inet ${T} (changed)`],
      'a dormant table',
    ],
    [
      [...listing(), { chain: { family: 'inet', name: 'more' } }],
      [`nft chain inet ${T} more (without digest)`],
      'a chain of another program',
    ],
  ]
  for (const [items, damage, reason] of rows) {
    assert.deepEqual(damageOf(partsOf(items), seals), damage, reason)
  }
  assert.deepEqual(damageOf(partsOf(listing()), new Map()), [`nft chain inet ${T} seals`])
})

test('damageOf only counts rules if another version of nft lists them', () => {
  const seals = sealsIn(digestScript(partsOf(listing())))
  const items = listing('1.1.3').filter((_, i) => i !== 7)
  const worded = [...items, rule('queries', 9, { 'drop now': null })]
  assert.deepEqual(damageOf(partsOf(worded), seals), [])
  assert.deepEqual(damageOf(partsOf(items), seals), [`nft chain inet ${T} queries (1 of 2 rules)`])
})

test('digestScript writes comments that nft accepts', () => {
  const name = `chain bridge ${'q'.repeat(31)}`
  const part = { rules: 4_294_967_295, digest: 'f'.repeat(16), version: '10.10.10-rc1' }
  const [, comment = ''] = /comment "(.*)"/.exec(digestScript(new Map([[name, part]]))) ?? []
  assert.ok(comment.length < 128, `${comment.length} octets`)
  assert.deepEqual(sealsIn(digestScript(new Map([[name, part]]))), new Map([[name, part]]))
})
