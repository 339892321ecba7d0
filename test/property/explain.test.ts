// What `explain` reports happens to the packet: with random policies, names and addresses, before and after an answer teaches an address,
// by the recorder's entries and by a naive reading of docs/spec/semantics 2. NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/explain/explain.ts'
import type { ExplainedVerdict } from '../../src/explain/explanation.ts'
import { formatPrefix, type Prefix } from '../../src/core/ip.ts'
import { indexLabels, policySelects } from '../../src/policy/match/labels.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { addressNumber, mkEndpoint, Node, prefixOf, wireOf } from '../support/nodes/node.ts'
import { naiveVerdict } from '../support/models/naive-policy.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { NAMES, PORTS, randomPolicies } from '../support/models/random-policy.ts'

const RUNS = runsOf(40)
const QUESTIONS = 24
const NODE_ADDRESSES = ['198.18.0.1', '2001:db8::fe'] as const
const ENDPOINT_ADDRESSES = ['198.18.0.9', '2001:db8::9'] as const
const LABELS = ['k8s:app=a']

class Run {
  readonly random: Random
  readonly node: Node
  readonly policies: readonly Policy[]
  readonly #default
  readonly #taught: { readonly name: string; readonly address: Prefix }[] = []

  constructor(seed: number) {
    this.random = new Random(seed)
    this.#default = this.random.pick(['allow', 'audit', 'deny'] as const)
    this.node = new Node({ defaultEgress: this.#default, nodeAddresses: NODE_ADDRESSES })
    this.node.setEndpoints([mkEndpoint('a', ENDPOINT_ADDRESSES, LABELS)])
    this.policies = randomPolicies(this.random, 1 + this.random.below(4))
    this.node.setPolicies(this.policies)
  }

  question(): void {
    const { random, node } = this
    const family = random.oneIn(2) ? 4 : 6
    const other = random.pick([...NODE_ADDRESSES, ...ENDPOINT_ADDRESSES, '203.0.113.5'])
    const text = random.oneIn(5) ? other : addressNumber(family, random.below(12))
    const address = prefixOf(text)
    const name = random.oneIn(3) ? undefined : random.pick(NAMES)
    const guarded = NODE_ADDRESSES.some((each) => each === text)
    const world = name === undefined || guarded ? [] : [{ name, address }]
    const pick = random.pick(PORTS)
    const first = this.ask(name, address, pick)
    assert.equal(first, this.naive(address, pick, world), `${name} ${text} before it is learned`)
    if (name === undefined || guarded || random.oneIn(2)) return
    node.learn(node.endpoint('a').id, name, [text])
    this.#taught.push({ name, address })
    const [port, protocol] = pick
    assert.equal(this.ask(undefined, address, pick), first, `${text} after it was learned`)
    assert.equal(node.verdict('a', text, port, protocol), first, `${name} ${text} in the datapath`)
  }

  ask(
    name: string | undefined,
    address: Prefix,
    pick: readonly [number, number],
  ): ExplainedVerdict {
    const { core, policies } = this.node
    const { id, labels, hook } = this.node.endpoint('a')
    const [port, protocol] = pick
    const known = name === undefined ? {} : { name: wireOf(name) }
    const asked = { kind: 'connect', address, port, protocol, ...known } as const
    // Without own addresses, because no packet to them is judged.
    const found = explain(
      { core, policies },
      { id, labels, hook, addresses: [], audited: undefined },
      asked,
    )
    assert.ok(found !== undefined)
    this.checkRules(found)
    return found.verdict
  }

  /** The rules of a verdict belong to the endpoint's policies and have the kind of the verdict. */
  checkRules({ verdict, rules }: NonNullable<ReturnType<typeof explain>>): void {
    const labels = indexLabels(LABELS)
    const own = this.policies.filter((policy) => policySelects(policy, labels))
    const able = own.filter(
      ({ audited }) => verdict === 'allow' || audited === (verdict === 'audit' ? true : undefined),
    )
    const places = able.flatMap((policy) =>
      policy.rules.map(({ action, position }) => `${action} ${policy.name}:${position.line}`),
    )
    for (const { policy, line, action } of rules) {
      assert.ok(places.includes(`${action} ${policy}:${line}`), `${policy}:${line} can make it`)
      assert.equal(action, verdict === 'allow' ? 'allow' : 'deny')
    }
  }

  naive(
    peer: Prefix,
    [port, protocol]: readonly [number, number],
    more: readonly { readonly name: string; readonly address: Prefix }[],
  ): ExplainedVerdict {
    const world = {
      nodeAddresses: NODE_ADDRESSES.map(prefixOf),
      endpointAddresses: ENDPOINT_ADDRESSES.map(prefixOf),
      labelled: ENDPOINT_ADDRESSES.map((each) => ({ prefix: prefixOf(each), labels: LABELS })),
      names: [...this.#taught, ...more],
    }
    const flow = { labels: LABELS, peer, protocol, port }
    return naiveVerdict(world, this.policies, this.#default, flow)
  }
}

test('explain reports what happens to the packet, before and after an answer teaches the address', () => {
  const first = Number(process.env['NAMEGATE_SEED'] ?? 20_261_121)
  const seen = new Set<ExplainedVerdict>()
  for (let seed = first; seed < first + RUNS; seed++) {
    const run = new Run(seed)
    for (let i = 0; i < QUESTIONS; i++) {
      try {
        run.question()
      } catch (error) {
        const policies = JSON.stringify(run.policies, (_, value: unknown) =>
          value instanceof Uint8Array
            ? formatPrefix({ family: 4, octets: value, length: 32 })
            : value,
        )
        throw new Error(`seed ${seed}: ${String(error)}: ${policies}`, { cause: error })
      }
    }
    seen.add(run.ask(undefined, prefixOf('203.0.113.5'), [443, 6]))
  }
  assert.deepEqual([...seen].sort(), ['allow', 'audit', 'deny'])
})
