// Housekeeping ends with the daemon: a planned slice of work does nothing after the stop.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Housekeeping } from '../../src/reconcile/housekeeping.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const PAIRS = 2000

/** Each reading of this clock adds more time than a slice can take. */
class SlowClock extends FakeClock {
  #looks = 0

  override now(): number {
    return super.now() + this.#looks++
  }
}

test('Housekeeping does nothing in a planned slice after it was stopped', () => {
  const clock = new SlowClock()
  const node = new Node({ clock, graceSeconds: 0 })
  const egress = `endpointSelector: {}\negress: [{ toFQDNs: [{ matchPattern: '*.shop.test' }] }]`
  node.setPolicies(mkPolicies(egress))
  node.setEndpoints([mkEndpoint('pod', ['10.0.0.1'])])
  const pod = node.endpoint('pod').id
  for (let i = 0; i < PAIRS; i++) {
    node.learn(pod, `n${i}.shop.test`, [`198.18.${i >> 8}.${i & 255}`], 1)
  }
  const { core, transition } = node
  const nothing = (): void => undefined
  const housekeeping = new Housekeeping({ core, transition, onEvent: nothing, onHooks: nothing })
  housekeeping.start()
  for (let ms = 0; ms < 10_000 && core.expiry.forgotten === 0; ms++) clock.advance(1)
  const { forgotten } = core.expiry
  assert.ok(forgotten > 0 && forgotten < PAIRS, `${forgotten} forgotten`)
  housekeeping.stop()
  clock.advance(10_000)
  assert.equal(core.expiry.forgotten, forgotten)
})
