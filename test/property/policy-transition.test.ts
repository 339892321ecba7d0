// From any policy to any other while names are known: on every single write of every commit, a flow that is allowed
// before and after is allowed; and afterwards every verdict is what a naive reading of docs/spec/semantics 2 says.
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Prefix } from '../../src/core/ip.ts'
import type { Policy } from '../../src/policy/rule.ts'
import { addressNumber, mkEndpoint, Node, prefixOf } from '../support/nodes/node.ts'
import { naiveVerdict, type NaiveVerdict } from '../support/models/naive-policy.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { NAMES, PORTS, randomPolicies, randomPolicy } from '../support/models/random-policy.ts'

const RUNS = runsOf(60)
const CHANGES_PER_RUN = 4
const DEFAULTS = ['allow', 'audit', 'deny'] as const
const ENDPOINTS = [
  mkEndpoint('a', ['198.18.0.9', '2001:db8::9'], ['k8s:app=a']),
  mkEndpoint('b', ['198.18.1.1'], ['k8s:app=b']),
]
const NODE_ADDRESSES = ['198.18.0.1', '2001:db8::fe']

interface Flow {
  readonly endpoint: string
  readonly peer: Prefix
  readonly port: number
  readonly protocol: number
}

class Run {
  readonly random: Random
  readonly node: Node
  readonly flows: readonly Flow[]
  readonly #default: (typeof DEFAULTS)[number]
  readonly #names: { readonly name: string; readonly address: Prefix }[] = []
  policies: readonly Policy[] = []

  constructor(seed: number) {
    this.random = new Random(seed)
    this.#default = this.random.pick(DEFAULTS)
    this.node = new Node({
      defaultEgress: this.#default,
      nodeAddresses: NODE_ADDRESSES,
      staticIdentities: this.random.oneIn(3) ? 0 : 1000,
      rowsPerLook: 1 + this.random.below(6),
    })
    this.node.setEndpoints(ENDPOINTS)
    const last = Array.from({ length: 12 }, (_, i) => i)
    const addresses = last.flatMap((i) => [addressNumber(4, i), addressNumber(6, i)])
    const peers = [...addresses, ...NODE_ADDRESSES, '198.18.1.1', '203.0.113.5', '2001:db9::1']
    this.flows = ENDPOINTS.flatMap(({ name }) =>
      peers.flatMap((peer) =>
        PORTS.map(([port, protocol]) => ({ endpoint: name, peer: prefixOf(peer), port, protocol })),
      ),
    )
  }

  /** An answer with a new address, or one known already, for some name. */
  learn(): void {
    const name = this.random.pick(NAMES)
    const text = addressNumber(this.random.oneIn(2) ? 4 : 6, this.random.below(12))
    if (NODE_ADDRESSES.includes(text)) return
    this.node.learn(this.node.endpoint(this.random.pick(['a', 'b'])).id, name, [text])
    this.#names.push({ name, address: prefixOf(text) })
  }

  verdicts(): readonly NaiveVerdict[] {
    const world = {
      nodeAddresses: NODE_ADDRESSES.map(prefixOf),
      endpointAddresses: ENDPOINTS.flatMap(({ addresses }) => addresses),
      labelled: ENDPOINTS.flatMap(({ addresses, labels }) =>
        addresses.map((prefix) => ({ prefix, labels })),
      ),
      names: this.#names,
    }
    return this.flows.map((flow) => {
      const labels = this.node.endpoint(flow.endpoint).labels
      return naiveVerdict(world, this.policies, this.#default, { ...flow, labels })
    })
  }

  enforced({ endpoint, peer, port, protocol }: Flow): NaiveVerdict {
    const { recorder } = this.node
    return recorder.verdict(this.node.endpoint(endpoint).id, peer, protocol, port)
  }

  /** Watches flows that pass now and will pass then, on every write until `stop`. */
  watch(before: readonly NaiveVerdict[], after: readonly NaiveVerdict[]): () => void {
    const kept = this.flows.filter((_, i) => before[i] !== 'deny' && after[i] !== 'deny')
    const watched = Array.from({ length: Math.min(kept.length, 24) }, () => this.random.pick(kept))
    let fault = ''
    this.node.recorder.onWrite = ({ section, action, key }) => {
      const cut = watched.find((flow) => this.enforced(flow) === 'deny')
      if (cut !== undefined && fault === '')
        fault = `${text(cut)} is cut after ${section} ${action} ${key}`
    }
    return () => {
      this.node.recorder.onWrite = () => undefined
      assert.equal(fault, '')
    }
  }

  change(): void {
    const before = this.verdicts()
    const i = this.random.below(4)
    const changed = this.random.oneIn(4)
      ? randomPolicies(this.random, this.random.below(5))
      : [...this.policies.filter((_, n) => n !== i), randomPolicy(this.random, i)]
    this.policies = changed
    const stop = this.watch(before, this.verdicts())
    this.node.policies.setPolicies(changed, this.node.endpoints.registry)
    this.node.transition.begin()
    while (!this.node.transition.step(0)) if (this.random.oneIn(6)) this.learn()
    stop()
  }

  /** Every flow as the naive reading has it. */
  compare(): void {
    const expected = this.verdicts()
    const wrong = this.flows.flatMap((flow, i) =>
      this.enforced(flow) === expected[i]
        ? []
        : [`${text(flow)}: ${this.enforced(flow)}, not ${expected[i]}`],
    )
    assert.deepEqual(wrong, [])
    assert.deepEqual(this.node.differences(), [])
    assert.equal(this.node.core.ipcache.changedCount, 0)
  }
}

function text({ endpoint, peer, port, protocol }: Flow): string {
  return `${endpoint} -> ${peer.family} ${peer.octets.slice(0, peer.family === 4 ? 4 : 16).join('.')} ${port}/${protocol}`
}

function runOnce(seed: number): void {
  const run = new Run(seed)
  for (let i = 0; i < 10; i++) run.learn()
  run.policies = randomPolicies(run.random, 3)
  run.node.setPolicies(run.policies)
  run.compare()
  for (let change = 0; change < CHANGES_PER_RUN; change++) {
    for (let i = 0; i < 3; i++) run.learn()
    run.compare()
    run.change()
    run.compare()
  }
}

test('Transition never cuts a flow that is allowed before and after, and ends where a naive reading does', () => {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  const first = replay === 0 ? 1 : replay
  for (let seed = first; seed < first + (replay === 0 ? RUNS : 1); seed++) {
    try {
      runOnce(seed)
    } catch (error) {
      throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
    }
  }
})

test('Transition cuts no flow that other keys pass when audited denies go and come in one change', () => {
  // The new default is hidden by an old audited deny until that goes; found among 1,200 runs.
  runOnce(587)
})
