// What goes on by itself ends with the daemon: a slice of work that was to come finds nothing open any more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Housekeeping } from '../../src/control/housekeeping.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/node.ts'

const PAIRS = 2000

/** Every look at it takes longer than a slice may, and what is to come soon waits for the test. */
class SlowClock extends FakeClock {
  readonly waiting: (() => void)[] = []
  #looks = 0

  override now(): number {
    return super.now() + this.#looks++
  }

  override soon(run: () => void): void {
    this.waiting.push(run)
  }
}

test('Housekeeping does nothing more of a slice that was to come when it is stopped', () => {
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
  clock.advance(5000)
  const goOn = (): void => clock.waiting.splice(0).forEach((run) => run())
  while (core.expiry.forgotten === 0) goOn()
  const { forgotten } = core.expiry
  assert.ok(forgotten < PAIRS && clock.waiting.length > 0, `${forgotten} forgotten`)
  housekeeping.stop()
  goOn()
  assert.equal(core.expiry.forgotten, forgotten)
})
