// The tiers of ClusterNetworkPolicies: what `evaluate` decides, when rules are complete, and that the three answers of a datapath give the
// verdict of the API's text. Policies without tiers compile to the same entries as before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { identity } from '../../../src/core/ids.ts'
import { LabelSets } from '../../../src/core/labels.ts'
import { SCTP, TCP, UDP } from '../../../src/core/protocol.ts'
import { FlatRules } from '../../../src/datapath/flat-rules.ts'
import { longestMatch, outcomeOf } from '../../../src/datapath/verdict.ts'
import {
  ANY_IDENTITY,
  ENDPOINT_CLASS,
  HOST,
  RESERVED_NAMES,
  RESOURCE_CLASS,
  WORLD_IPV4,
} from '../../../src/identity/reserved.ts'
import { SelectorCache, type Selector } from '../../../src/identity/selector-cache.ts'
import { compileEntries, coversClass } from '../../../src/policy/compile/compile.ts'
import { DEFAULT_EGRESS, type DefaultEgress } from '../../../src/policy/compile/default-egress.ts'
import { flatten, type Coverage } from '../../../src/policy/compile/flatten.ts'
import { evaluate } from '../../../src/policy/compile/tiers.ts'
import type { PeerSelector, Policy, Rule } from '../../../src/policy/rule.ts'
import { randomPolicies } from '../../support/models/random-policy.ts'
import { Random } from '../../support/models/random.ts'
import {
  ENTITIES,
  naive,
  plainPolicy,
  policyOf,
  POSITION,
  tierPolicy,
  type Packet,
} from '../../support/models/tier-policies.ts'
import { patternOf } from '../../support/nodes/node.ts'

const CLASSES = [HOST, ENDPOINT_CLASS, RESOURCE_CLASS, WORLD_IPV4]
const PORTS = [
  [TCP, 25],
  [TCP, 443],
  [UDP, 443],
  [SCTP, 7],
  [1, 0],
] as const
/** The verdict that the datapath makes from the three answers for an identity with the labels of these names. */
function enforced(
  policies: readonly Policy[],
  egress: DefaultEgress,
  packets: readonly Packet[],
): readonly boolean[] {
  const labelSets = new LabelSets()
  const selectors = new SelectorCache({ labelSets })
  let origin = 0
  const compiled = compileEntries(policies, { defaultEgress: egress, originOf: () => ++origin })
  const rules = {
    levels: compiled.levels,
    complete: compiled.complete,
    selectors: new Map<Selector, readonly Coverage[]>(),
  }
  for (const { spec, coverages } of compiled.selectors) {
    const { selector } = selectors.acquire(spec)
    rules.selectors.set(selector, [...(rules.selectors.get(selector) ?? []), ...coverages])
  }
  const sets = new Map<number, number>()
  const flat = new FlatRules({ selectors, labelSets, setOf: (id) => sets.get(id) })
  return packets.map(({ names, addressClass, protocol, port }, i) => {
    const id = identity(1000 + i)
    const own = RESERVED_NAMES.get(addressClass) ?? ''
    const isKnown = addressClass === ENDPOINT_CLASS || addressClass === RESOURCE_CLASS
    const set = labelSets.intern([
      ...names.map((each) => `fqdn:${each}`),
      isKnown ? 'k8s:app=a' : own,
    ])
    sets.set(id, set)
    selectors.addIdentity(id, set)
    const answers = [id, identity(addressClass), ANY_IDENTITY].map((key) => {
      const entries = flat
        .entriesFor(rules, key)
        .map(({ action, ...entry }) => ({ ...entry, verdict: action }))
      return longestMatch(entries, protocol, port)?.verdict ?? 'none'
    })
    const { verdict } = outcomeOf(answers)
    return verdict === 'allow' || verdict === 'audit'
  })
}

const PACKETS: readonly Packet[] = CLASSES.flatMap((addressClass) =>
  [[], ['a.x'], ['b.x'], ['a.x', 'b.x'], ['a.x', 'b.x', 'c.x']].flatMap((names) =>
    PORTS.map(([protocol, port]) => ({ names, addressClass, protocol, port })),
  ),
)

function compare(policies: readonly Policy[], egress: DefaultEgress): void {
  const found = enforced(policies, egress, PACKETS)
  PACKETS.forEach((packet, i) => {
    assert.equal(found[i], naive(policies, egress, packet), JSON.stringify(packet))
  })
}

const EGRESS = DEFAULT_EGRESS.filter((each) => each !== 'allow-named')

test("FlatRules: the three answers for identities with several labels give the API's verdict", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(tierPolicy, tierPolicy, plainPolicy), { maxLength: 5 }),
      fc.constantFrom(...EGRESS),
      compare,
    ),
    { numRuns: 300 },
  )
})

function tier(name: 'Admin' | 'Baseline', priority: number, ...rules: readonly Rule[]): Policy {
  return policyOf({ rules, tier: { name, priority }, defaultDeny: false })
}

function plain(...rules: readonly Rule[]): Policy {
  return policyOf({ rules, defaultDeny: false })
}

function rule(action: Rule['action'], peer: PeerSelector, port?: number): Rule {
  const range = { protocol: TCP, low: port ?? 0, high: port ?? 0 }
  const toPorts = port === undefined ? undefined : [{ ports: [range], dns: undefined }]
  return { action, peers: { kind: 'selectors', selectors: [peer] }, toPorts, position: POSITION }
}

const A: PeerSelector = { kind: 'fqdn', pattern: patternOf('a.x') }
const WORLD: PeerSelector = { kind: 'entity', entity: 'world' }

const COMPLETE: readonly (readonly [
  policies: readonly Policy[],
  complete: boolean,
  reason: string,
])[] = [
  [[plain(rule('deny', WORLD, 25), rule('allow', A))], false, 'no tiers'],
  [[tier('Admin', 1, rule('allow', A)), plain(rule('allow', WORLD))], false, 'both allow'],
  [
    [tier('Admin', 1, rule('deny', A)), plain(rule('allow', WORLD))],
    false,
    'deny wins in any case',
  ],
  [
    [tier('Admin', 1, rule('allow', A)), plain(rule('deny', WORLD, 25))],
    true,
    'Admin allows what a class denies',
  ],
  [[tier('Admin', 1, rule('allow', A, 443)), plain(rule('deny', WORLD, 25))], false, 'other ports'],
  [[tier('Admin', 1, rule('allow', A)), plain(rule('deny', A, 25))], false, 'no class'],
  [
    [tier('Baseline', 1, rule('deny', A)), plain(rule('allow', WORLD, 25))],
    true,
    'a class allows what Baseline denies',
  ],
  [[tier('Baseline', 1, rule('deny', A))], false, 'the default comes after Baseline'],
  [[tier('Admin', 1, rule('pass', A))], true, 'a Pass rule'],
  [
    [
      tier('Baseline', 1, rule('deny', A)),
      policyOf({ rules: [rule('allow', WORLD, 25)], defaultDeny: true }),
    ],
    false,
    'default deny leaves out Baseline',
  ],
]

test('compileEntries completes rules exactly where a class can contradict an identity', () => {
  for (const [policies, complete, reason] of COMPLETE) {
    const compiled = compileEntries(policies, { defaultEgress: 'allow', originOf: () => 1 })
    assert.equal(compiled.complete, complete, reason)
    compare(policies, 'allow')
  }
})

test('compileEntries compiles policies without tiers as before', () => {
  const random = new Random(20_261_123)
  for (let i = 0; i < 300; i++) {
    const policies = randomPolicies(random, 1 + random.below(4))
    const defaultEgress = random.pick(DEFAULT_EGRESS)
    let origin = 0
    const compiled = compileEntries(policies, { defaultEgress, originOf: () => ++origin })
    assert.equal(compiled.complete, false)
    const lists = [...compiled.levels.values(), ...compiled.selectors.map((each) => each.coverages)]
    for (const coverages of [...lists, lists.flat()]) {
      assert.ok(coverages.every(({ turn }) => turn === undefined))
      assert.deepEqual(flatten(coverages, evaluate), flatten(coverages))
    }
  }
})

test('entities and defaults treat endpoints and resources alike, which complete entries need', () => {
  for (const each of [...ENTITIES, 'world-ipv6', 'none'] as const) {
    assert.equal(coversClass(each, ENDPOINT_CLASS), coversClass(each, RESOURCE_CLASS), each)
  }
  for (const defaultEgress of DEFAULT_EGRESS) {
    const { levels } = compileEntries([], { defaultEgress, originOf: () => 1 })
    assert.deepEqual(levels.get(ENDPOINT_CLASS), levels.get(RESOURCE_CLASS), defaultEgress)
  }
})
