// The state of interception follows the kernel's rules also without events about their change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { InterceptChanges } from '../../src/intercept/changes.ts'
import { Interception } from '../../src/intercept/interception.ts'
import type { InterceptPlan } from '../../src/intercept/plan.ts'
import { Rules } from '../../src/intercept/rules.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { at } from '../support/labs/intercept-plans.ts'

const PLAN: InterceptPlan = {
  tproxy: [],
  redirect: {
    targets: { 4: { address: '127.0.0.1', port: 5300 } },
    ofCgroups: false,
    uid: 0,
    exempt: undefined,
  },
  mark: 1,
  table: 2,
  families: [4],
  notes: [],
}
const OTHERS = { rule: { chain: 'about', comment: 'plan of another config' } }
const LOOK_MS = 3000

/** A kernel that reports no event. `table` is the output of nft(8) for our table. */
class QuietKernel {
  table: string | undefined
  generation = 1
  looks = 0
  #seen = 0

  readonly changes: InterceptChanges = {
    hasChanged: () => false,
    hasRoutingChanged: () => false,
    hasGenerationChanged: () => {
      const isSame = this.#seen === this.generation
      this.#seen = this.generation
      return !isSame
    },
    listen: () => true,
    stop: () => undefined,
  }

  readonly rules = new Rules({
    run: async (_, args) => {
      if (args.includes('inet')) this.looks++
      const isThere = this.table !== undefined && args.includes('inet')
      return await Promise.resolve({
        code: isThere ? 0 : 1,
        stdout: isThere ? String(this.table) : '',
        stderr: isThere ? '' : 'No such file or directory',
      })
    },
    flags: { read: () => [], set: () => undefined },
    forgetFlows: () => 0,
  })
}

test('interception notices a change without an event within seconds, and lists nothing without a change', async () => {
  const [kernel, clock] = [new QuietKernel(), new FakeClock()]
  const interception = new Interception({
    plan: PLAN,
    onStart: false,
    onExit: 'closed',
    rules: kernel.rules,
    alone: async (work) => await work(),
    changes: kernel.changes,
    clock,
    log: SILENT,
  })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    for (let i = 0; i < 10; i++) await turn()
  }
  const state = (): string => interception.state.kind
  await interception.start(at())
  assert.equal(state(), 'absent')
  await pass(LOOK_MS)

  kernel.table = JSON.stringify({ nftables: [OTHERS] })
  kernel.generation++
  await pass(LOOK_MS)
  assert.equal(state(), 'other')
  kernel.table = undefined
  kernel.generation++
  await pass(LOOK_MS)
  assert.equal(state(), 'absent')

  const before = kernel.looks
  await pass(20 * LOOK_MS)
  assert.equal(kernel.looks, before, 'the generation is the same')

  interception.release()
  kernel.generation++
  await pass(LOOK_MS)
  assert.equal(kernel.looks, before, 'no look after the end')
})
