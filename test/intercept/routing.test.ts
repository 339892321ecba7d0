import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  foreignRoute,
  foundSteps,
  parseRules,
  routingSteps,
  ruleInTheWay,
} from '../../src/intercept/routing.ts'
import { mkPlan } from '../support/labs/intercept-plans.ts'

const PLAN = mkPlan({ listeners: '{ port: 10053, mode: tproxy }' })

/** What `ip -4 -j rule` of iproute2 6.1 prints after `intercept up`. */
const OURS = `[{"priority":0,"src":"all","table":"local"},
{"priority":53,"src":"all","fwmark":"0x4e47","iif":"lo","goto":55,"protocol":"78"},
{"priority":54,"src":"all","fwmark":"0x4e47","table":"20039","protocol":"78"},
{"priority":55,"src":"all","nop":null,"protocol":"78"},
{"priority":32766,"src":"all","table":"main"},{"priority":32767,"src":"all","table":"default"}]`
const ROUTES =
  '[{"type":"local","dst":"default","dev":"lo","table":"20039","scope":"host","flags":[]}]'

test('foundSteps reads what routingSteps make, in their order', () => {
  const made = routingSteps(PLAN).filter(({ add }) => add[0] === '-4')
  assert.deepEqual(foundSteps(4, parseRules(OURS), ROUTES), made)
  assert.deepEqual(foundSteps(4, parseRules('[]'), ''), [])
})

test('ruleInTheWay names rules of others that would take our packets, and no others', () => {
  const rows: readonly (readonly [rule: string, reason: RegExp | undefined, why: string])[] = [
    [
      `"priority":10,"src":"all","table":"200"`,
      /comes before ours: move it behind 55/,
      'everything is routed there',
    ],
    [
      `"priority":10,"src":"10.0.0.0","srclen":8,"table":"200"`,
      /from 10.0.0.0\/8/,
      'some clients are routed there',
    ],
    [`"priority":100,"src":"all","table":"200"`, undefined, 'after ours'],
    [
      `"priority":9,"src":"all","fwmark":"0x200","fwmask":"0xf00","table":"2004"`,
      undefined,
      'not our mark',
    ],
    [
      `"priority":99,"src":"all","fwmark":"0x40","fwmask":"0x40","table":"9"`,
      /mark 0x4e47: give intercept.mark/,
      'our mark has the bit',
    ],
    [
      `"priority":99,"src":"all","fwmark":"0x4e47","table":"9"`,
      /takes packets with mark/,
      'our mark',
    ],
    [
      `"priority":900,"src":"all","table":"20039"`,
      /uses routing table 20039: give intercept.table/,
      'our table',
    ],
    [
      `"priority":54,"src":"all","fwmark":"0x4e47","table":"20039","protocol":"4"`,
      /uses routing table/,
      'the same as ours, of another program',
    ],
    [
      `"priority":20,"src":"all","iif":"lo","table":"200"`,
      undefined,
      'only packets that this host sends',
    ],
    [`"priority":1,"src":"all","table":"local"`, undefined, 'the local table moved'],
  ]
  for (const [rule, reason, why] of rows) {
    const found = ruleInTheWay(parseRules(`[{${rule}}]`), PLAN)
    if (reason === undefined) assert.equal(found, undefined, why)
    else assert.match(found ?? '', reason, why)
  }
  assert.equal(ruleInTheWay(parseRules(OURS), PLAN), undefined)
})

test('foreignRoute separates routes of others in our table from ours', () => {
  assert.equal(
    foreignRoute('[{"type":"local","dst":"default","dev":"lo","protocol":"78"}]'),
    undefined,
  )
  assert.equal(
    foreignRoute('[{"dst":"default","dev":"wg0","protocol":"static"}]'),
    'default dev wg0',
  )
  assert.equal(foreignRoute(''), undefined)
})
