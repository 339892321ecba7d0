// A daemon that starts while removals of policies are held. They stay held until the end of a new hold, or until a user accepts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configFromObject } from '../../src/config/load.ts'
import type { Kubernetes } from '../../src/kubernetes/kubernetes.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { ApiModel } from '../support/kubernetes/api-model.ts'
import { MemoryApi } from '../support/kubernetes/memory-api.ts'
import { modelCluster } from '../support/kubernetes/model-cluster.ts'

const RESOURCE = 'ciliumnetworkpolicies'
const HOLD_MS = 300_000

class Lab {
  readonly model = new ApiModel()
  readonly clock = new FakeClock()
  /** The names of the policies in force. */
  readonly inForce = new Set<string>()
  readonly #saved = new Map<string, string>()
  #cluster: Kubernetes | undefined

  constructor(...names: readonly string[]) {
    for (const name of names) this.put(name)
    this.restart()
  }

  get held(): number {
    const found = this.#cluster?.collections.find(({ kind }) => kind === 'CiliumNetworkPolicy')
    return found?.held ?? -1
  }

  put(name: string): void {
    const spec = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.0/24'] }] }
    this.model.put(RESOURCE, { metadata: { name, namespace: 'shop' }, spec })
  }

  remove(...names: readonly string[]): void {
    for (const name of names) this.model.remove(RESOURCE, name, 'shop')
  }

  /** Starts another daemon with the kept state. */
  restart(): void {
    this.#cluster?.stop()
    this.inForce.clear()
    const keep = (name: string, text: string | undefined): void => {
      if (text === undefined) this.#saved.delete(name)
      else this.#saved.set(name, text)
    }
    this.#cluster = modelCluster({
      config: configFromObject({ kubernetes: { node: 'n', 'mass-removal': { hold: '5m' } } }),
      clock: this.clock,
      log: SILENT,
      api: new MemoryApi(this.model, this.clock),
      keeper: { saved: new Map(this.#saved), keep },
      onChange: ({ policies }) => {
        for (const [name, received] of policies) {
          if (received === undefined) this.inForce.delete(name)
          else this.inForce.add(name)
        }
        return false
      },
    })
    this.#cluster.restore()
    this.#cluster.start()
    this.pass(1000)
  }

  accept(): number {
    const accepted = this.#cluster?.accept() ?? 0
    this.pass(1000)
    return accepted
  }

  pass(ms: number): void {
    this.clock.advance(ms)
  }
}

void test('a start keeps the hold of many removals, also if few of them are left', () => {
  const lab = new Lab('a', 'b', 'c', 'd', 'e', 'f')
  lab.remove('a', 'b', 'c')
  lab.pass(1000)
  for (const name of ['b', 'c']) lab.put(name)
  lab.pass(1000)
  assert.deepEqual([lab.inForce.size, lab.held], [6, 1])
  lab.restart()
  assert.deepEqual([lab.inForce.size, lab.held], [6, 1])
  lab.pass(HOLD_MS - 2000)
  assert.deepEqual([lab.inForce.size, lab.held], [6, 1])
  lab.pass(2000)
  assert.deepEqual([lab.inForce.size, lab.held], [5, 0])
  lab.restart()
  assert.deepEqual([lab.inForce.size, lab.held], [5, 0], 'a hold that has ended is not kept')
})

void test('a start keeps the hold of a kind whose definition was deleted', () => {
  const lab = new Lab('a', 'b')
  lab.model.undefine(RESOURCE)
  lab.pass(1000)
  assert.deepEqual([lab.inForce.size, lab.held], [2, 2])
  lab.restart()
  lab.pass(20_000)
  assert.deepEqual([lab.inForce.size, lab.held], [2, 2])
  assert.equal(lab.accept(), 2)
  assert.deepEqual([lab.inForce.size, lab.held], [0, 0])
})

void test('a policy that is restored while no daemon runs is not removed', () => {
  const lab = new Lab('a', 'b')
  lab.remove('a', 'b')
  lab.pass(1000)
  assert.equal(lab.held, 2)
  lab.put('a')
  lab.restart()
  assert.deepEqual([lab.inForce.size, lab.held], [2, 1])
  lab.pass(2 * HOLD_MS)
  assert.deepEqual([lab.inForce.size, lab.held], [1, 0])
})
