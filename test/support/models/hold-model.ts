// A whole node over a kernel that delays, stalls, refuses and recovers at random, while clients ask, policies and endpoints change and
// names expire. The model checks each reply at the moment when it leaves, and counts the outcome of each query. Only clients, server
// and kernel are simulated (test/scenarios/runner).

import assert from 'node:assert/strict'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { parseEndpoints } from '../../../src/endpoints/file.ts'
import { checkDatapath, checkPromise } from '../../scenarios/runner/check.ts'
import { judge } from '../../scenarios/runner/packets.ts'
import { World } from '../../scenarios/runner/world.ts'
import { Random } from './random.ts'
import { validateCore } from './validate-core.ts'

const CLIENTS = ['10.0.1.5', '10.0.1.6', '10.0.1.7'] as const
const NAMES = 24
const A = 1
const AAAA = 28
const CONFIG = `
dns: { hold: { limit: 100ms }, grace-after-ttl: 0s }
learning: LEARNING
`

interface Asked {
  readonly from: string
  readonly name: string
}

export class HoldModel {
  readonly random: Random
  readonly world: World
  readonly #asked: Asked[] = []
  /** Number of the last question that got a reply, by client and name. */
  readonly #last = new Map<string, number>()
  /** What policy selects, without the end `.example`. */
  #pattern = '*'

  constructor(seed: number) {
    this.random = new Random(seed)
    const learning = seed % 2 === 0 ? 'endpoint' : 'node'
    this.world = new World(CONFIG.replace('LEARNING', learning), [])
    const { clients, zone } = this.world
    clients.onReply = (reply, to, number) => this.#check(reply, to, number)
    const lines = Array.from({ length: NAMES }, (_, i) => [
      `n${i}.example A: POOL 192.0.2.${1 + (i % 8)} 3 BY 1 TTL ${i % 3}`,
      `n${i}.example AAAA: NXDOMAIN`,
    ])
    const block = lines.flat().join('\n')
    zone.add({ verb: 'UPSTREAM', words: [], block, file: 'model', line: 1 })
    this.#setEndpoints()
    this.#setPolicy('*')
    this.world.settle()
  }

  step(): void {
    const { random, world } = this
    const choice = random.below(100)
    if (choice < 55) this.#ask()
    else if (choice < 75) world.clock.advance(random.below(40))
    else if (choice < 82) world.slow.takesMs = random.pick([0, 1, 10, 60, 150])
    else if (choice < 85) world.slow.stall()
    else if (choice < 90) world.slow.goOn()
    else if (choice < 92) world.kernel.refusal = random.pick(['prefix', 'policy'])
    else if (choice < 95) world.kernel.refusal = 'nothing'
    else if (choice < 97) this.#setPolicy(random.pick(['*', 'n1*', '*2']))
    else if (choice < 98) this.#setEndpoints()
    else world.clock.advance(random.below(4000))
    world.settle()
    checkDatapath(world)
  }

  /** Heals the kernel and lets all time limits pass. Each query has then ended exactly once. */
  finish(): void {
    const { world } = this
    world.kernel.refusal = 'nothing'
    world.slow.takesMs = 0
    world.slow.goOn()
    world.clock.advance(20_000)
    const { admission, settlement, releases, upstream, clients, core, transition } = world
    assert.deepEqual(
      [releases.count, upstream.inFlight.count],
      [0, 0],
      'nothing is held or in flight',
    )
    const { orphaned, exact, degraded, heldOutServfail, heldOut } = settlement.counters
    const { allowed } = admission.counters
    assert.equal(exact + degraded + heldOut + orphaned, allowed, 'each query ended once')
    assert.equal(heldOut, heldOutServfail)
    assert.equal(
      clients.counters.replied,
      clients.counters.asked - orphaned,
      'each query got its reply',
    )
    assert.deepEqual([core.committer.isUnderWay, transition.pending], [false, false])
    checkDatapath(world)
    core.labelSets.collect()
    if (process.env['VALIDATE'] === '1') validateCore(core)
  }

  #ask(): void {
    const { random, world } = this
    const from = random.pick(CLIENTS)
    const name = `n${random.below(NAMES)}.example`
    const type = random.oneIn(4) ? AAAA : A
    this.#asked.push({ from, name })
    world.clients.ask(world.collector.room(), {
      from,
      name,
      type,
      tcp: random.oneIn(3),
      edns: true,
    })
  }

  #check(reply: Parameters<typeof checkPromise>[1], to: string, number: number): void {
    const { world } = this
    checkPromise(world, reply, to)
    const { name } = this.#asked[number - 1] ?? assert.fail('no such question')
    const key = `${to} ${name}`
    assert.ok(number > (this.#last.get(key) ?? 0), `${key} is answered in order`)
    this.#last.set(key, number)
    const endpoint = [...world.endpoints.registry].find(({ name: each }) => each === `e${to}`)
    if (reply.rcode !== 'NOERROR' || world.transition.pending || endpoint === undefined) return
    if (!this.#selects(name)) return
    for (const address of reply.addresses) {
      assert.equal(judge(world, endpoint.name, `${address}:443`), 'allow', `${name} ${address}`)
    }
  }

  #selects(name: string): boolean {
    const [label = ''] = name.split('.')
    const parts = new RegExp(`^${this.#pattern.replaceAll('*', '[a-z0-9]*')}$`)
    return parts.test(label)
  }

  #setPolicy(pattern: string): void {
    this.#pattern = pattern
    const text = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: model }
spec:
  endpointSelector: {}
  egress: [{ toFQDNs: [{ matchPattern: "${pattern}.example" }] }]
`
    const { policies, faults } = loadPolicies(text, 'model.yaml')
    assert.deepEqual(faults, [])
    const { world } = this
    world.policyFiles.set('model.yaml', policies)
    world.policies.setPolicies(policies, world.endpoints.registry)
    world.housekeeping.beginTransition()
  }

  /** Keeps the addresses, and replaces some workloads. */
  #setEndpoints(): void {
    const { random, world } = this
    const isFirst = world.endpoints.registry.size === 0
    const there = CLIENTS.map((address) => (isFirst || !random.oneIn(2) ? address : undefined))
    const lines = CLIENTS.map((address, i) => {
      const name = there[i] === undefined ? `other${random.below(1000)}-${i}` : `e${address}`
      return `{ name: "${name}", addresses: [${address}], labels: { app: x } }`
    })
    const { endpoints, faults } = parseEndpoints(`endpoints: [${lines.join(', ')}]`, 'e.yaml')
    assert.deepEqual(faults, [])
    world.endpoints.apply(endpoints)
    world.housekeeping.beginTransition()
    world.unknown.endpointsChanged()
  }
}
