// Changes any policy to any other while names are known, on a node whose datapath records each write. `change` checks at every single
// write of every commit that a flow which is allowed before and after is allowed. `compare` compares every verdict with a naive reading
// of docs/spec/semantics 2.

import assert from 'node:assert/strict'
import type { Prefix } from '../../../src/core/ip.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { addressNumber, mkEndpoint, Node, prefixOf } from '../nodes/node.ts'
import { naiveVerdict, type NaiveVerdict } from './naive-policy.ts'
import { Random } from './random.ts'
import { NAMES, PORTS, randomPolicy } from './random-policy.ts'

const CHANGES = 4
const DEFAULTS = ['allow', 'audit', 'deny'] as const
const ENDPOINTS = [
  mkEndpoint('a', ['198.18.0.9', '2001:db8::9'], ['k8s:app=a']),
  mkEndpoint('b', ['198.18.1.1'], ['k8s:app=b']),
]
const NODE_ADDRESSES = ['198.18.0.1', '2001:db8::fe']

export interface PolicyRunOptions {
  /** Makes the policy with number `i`. */
  readonly policy?: (random: Random, i: number) => Policy
  readonly cidrMatchesEndpoints?: boolean
}

export interface Flow {
  readonly endpoint: string
  readonly peer: Prefix
  readonly port: number
  readonly protocol: number
}

export class PolicyRun {
  readonly random: Random
  readonly node: Node
  readonly flows: readonly Flow[]
  readonly #default: (typeof DEFAULTS)[number]
  readonly #policy: (random: Random, i: number) => Policy
  readonly #cidrMatchesKnown: boolean
  readonly #names: { readonly name: string; readonly address: Prefix }[] = []
  policies: readonly Policy[] = []
  #known:
    | {
        readonly policies: readonly Policy[]
        readonly names: number
        readonly verdicts: readonly NaiveVerdict[]
      }
    | undefined

  constructor(
    seed: number,
    { policy = randomPolicy, cidrMatchesEndpoints = false }: PolicyRunOptions = {},
  ) {
    this.random = new Random(seed)
    this.#policy = policy
    this.#cidrMatchesKnown = cidrMatchesEndpoints
    this.#default = this.random.pick(DEFAULTS)
    this.node = new Node({
      defaultEgress: this.#default,
      nodeAddresses: NODE_ADDRESSES,
      staticIdentities: this.random.oneIn(3) ? 0 : 1000,
      rowsPerLook: 1 + this.random.below(6),
      cidrMatchesEndpoints,
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

  randomPolicies(count: number): readonly Policy[] {
    return Array.from({ length: count }, (_, i) => this.#policy(this.random, i))
  }

  /** Learns a new or known address for some name. */
  learn(): void {
    const name = this.random.pick(NAMES)
    const text = addressNumber(this.random.oneIn(2) ? 4 : 6, this.random.below(12))
    if (NODE_ADDRESSES.includes(text)) return
    this.node.learn(this.node.endpoint(this.random.pick(['a', 'b'])).id, name, [text])
    this.#names.push({ name, address: prefixOf(text) })
  }

  /** The naive verdicts about all flows. They stay the same until policies or names change. */
  verdicts(): readonly NaiveVerdict[] {
    const [policies, names] = [this.policies, this.#names.length]
    if (this.#known?.policies !== policies || this.#known.names !== names)
      this.#known = { policies, names, verdicts: this.#judge() }
    return this.#known.verdicts
  }

  #judge(): readonly NaiveVerdict[] {
    const world = {
      nodeAddresses: NODE_ADDRESSES.map(prefixOf),
      endpointAddresses: ENDPOINTS.flatMap(({ addresses }) => addresses),
      labelled: ENDPOINTS.flatMap(({ addresses, labels }) =>
        addresses.map((prefix) => ({ prefix, labels })),
      ),
      names: this.#names,
      cidrMatchesKnown: this.#cidrMatchesKnown,
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

  /** Checks at every write until `stop` that flows which pass before and after the change pass. */
  watch(before: readonly NaiveVerdict[], after: readonly NaiveVerdict[]): () => void {
    const kept = this.flows.filter((_, i) => before[i] !== 'deny' && after[i] !== 'deny')
    const watched = Array.from({ length: Math.min(kept.length, 24) }, () => this.random.pick(kept))
    let fault = ''
    this.node.recorder.onWrite = ({ section, action, key }) => {
      const cut = watched.find((flow) => this.enforced(flow) === 'deny')
      if (cut !== undefined && fault === '')
        fault = `${formatFlow(cut)} is cut after ${section} ${action} ${key}`
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
      ? this.randomPolicies(this.random.below(5))
      : [...this.policies.filter((_, n) => n !== i), this.#policy(this.random, i)]
    this.policies = changed
    const stop = this.watch(before, this.verdicts())
    this.node.policies.setPolicies(changed, this.node.endpoints.registry)
    this.node.transition.begin()
    while (!this.node.transition.step(0)) if (this.random.oneIn(6)) this.learn()
    stop()
  }

  /** Compares every flow with the naive reading. */
  compare(): void {
    const expected = this.verdicts()
    const wrong = this.flows.flatMap((flow, i) =>
      this.enforced(flow) === expected[i]
        ? []
        : [`${formatFlow(flow)}: ${this.enforced(flow)}, not ${expected[i]}`],
    )
    assert.deepEqual(wrong, [])
    assert.deepEqual(this.node.differences(), [])
    assert.equal(this.node.core.ipcache.changedCount, 0)
  }
}

export function formatFlow({ endpoint, peer, port, protocol }: Flow): string {
  return `${endpoint} -> ${peer.family} ${peer.octets.slice(0, peer.family === 4 ? 4 : 16).join('.')} ${port}/${protocol}`
}

/** Makes several changes and compares before and after each. Returns the run. */
export function runChanges(seed: number, options: PolicyRunOptions = {}): PolicyRun {
  const run = new PolicyRun(seed, options)
  for (let i = 0; i < 10; i++) run.learn()
  run.policies = run.randomPolicies(3)
  run.node.setPolicies(run.policies)
  run.compare()
  for (let change = 0; change < CHANGES; change++) {
    for (let i = 0; i < 3; i++) run.learn()
    run.compare()
    run.change()
    run.compare()
  }
  return run
}
