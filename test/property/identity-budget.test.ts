// A fallback identity admits no packet that its label set would not: random policies with denies, exceptions and selectors for missing
// labels, names whose addresses lie in prefixes of policy, and fewer numbers than the answers want. Compared with a naive reading of
// docs/spec/semantics 2, which has no numbers.
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressNumber, mkEndpoint, Node, prefixOf } from '../support/nodes/node.ts'
import { naiveVerdict, type NaiveVerdict } from '../support/models/naive-policy.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { NAMES, PORTS, randomPolicies } from '../support/models/random-policy.ts'

const RUNS = runsOf(60)
const ENDPOINTS = [
  mkEndpoint('a', ['198.18.0.9', '2001:db8::9'], ['k8s:app=a']),
  mkEndpoint('b', ['198.18.1.1'], ['k8s:app=b']),
]
/** The order of verdicts by access. */
const ACCESS: Readonly<Record<NaiveVerdict, number>> = { deny: 0, audit: 1, allow: 2 }

interface Tally {
  degraded: number
  less: number
  equal: number
}

function runOnce(seed: number, tally: Tally): void {
  const random = new Random(seed)
  const defaultEgress = random.pick(['allow', 'audit', 'deny'] as const)
  const node = new Node({
    defaultEgress,
    dynamicIdentities: random.below(4),
    dynamicPerEndpoint: 1 + random.below(3),
    staticIdentities: random.oneIn(2) ? 0 : 1000,
  })
  node.setEndpoints(ENDPOINTS)
  const policies = randomPolicies(random, 5)
  node.setPolicies(policies)
  const taught: { readonly name: string; readonly address: ReturnType<typeof prefixOf> }[] = []
  for (let i = 0; i < 16; i++) {
    const name = random.pick(NAMES)
    const address = addressNumber(random.oneIn(3) ? 6 : 4, random.below(9))
    node.learn(node.endpoint(random.pick(['a', 'b'])).id, name, [address])
    taught.push({ name, address: prefixOf(address) })
  }
  tally.degraded += node.core.ipcache.degraded.size
  const world = {
    nodeAddresses: [],
    endpointAddresses: ENDPOINTS.flatMap(({ addresses }) => addresses),
    labelled: ENDPOINTS.flatMap(({ addresses, labels }) =>
      addresses.map((prefix) => ({ prefix, labels })),
    ),
    names: taught,
  }
  for (const { name, labels } of ENDPOINTS) {
    for (const { address } of taught) {
      for (const [port, protocol] of PORTS) {
        const flow = { labels, peer: address, port, protocol }
        const wanted = naiveVerdict(world, policies, defaultEgress, flow)
        const real = node.recorder.verdict(node.endpoint(name).id, address, protocol, port)
        assert.ok(
          ACCESS[real] <= ACCESS[wanted],
          `${name} gets ${real} where policy allows ${wanted}`,
        )
        if (real === wanted) tally.equal++
        else tally.less++
      }
    }
  }
  assert.deepEqual(node.differences(), [])
}

test('Allocator gives no fallback identity that admits more than the wanted labels', (t) => {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const tally: Tally = { degraded: 0, less: 0, equal: 0 }
  const seeds = replay === 0 ? Array.from({ length: RUNS }, (_, i) => i + 1) : [replay]
  for (const seed of seeds) {
    try {
      runOnce(seed, tally)
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed}: ${String(error)}`, { cause: error })
    }
  }
  t.diagnostic(
    `${tally.degraded} prefixes degraded, ${tally.less} verdicts give less, ${tally.equal} the same`,
  )
  if (replay === 0)
    assert.ok(
      tally.degraded > RUNS && tally.less > 0,
      'the runs reached the bound, and lost access',
    )
})
