// A blind spoofer that sends from the true name server's address, with the right question, to random ports under
// random ids, while ten queries are outstanding: nothing of it is accepted, and the true answers arrive all the
// while. The same forged answer under one true port and id is accepted, so it is the guess that fails. [A1-A4, F3]
// The run of a minute: test/bench/spoof.bench.ts.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { SpoofLab } from '../../support/labs/spoof-lab.ts'
import { canUseSteadyDns } from '../../support/peers/steady-dns.ts'

const skip = canUseNamegate() ?? canUseSteadyDns() ?? false
const RATE = 50_000
/** 150,000 packets, or fewer on a slow machine: 0.0004 hits expected. */
const SECONDS = 3.5

describe('namegate under forged answers', { skip, concurrency: false }, () => {
  const state: { lab?: SpoofLab } = {}

  before(async () => {
    state.lab = new SpoofLab()
    await state.lab.start()
  })
  after(async () => await state.lab?.close())

  it('accepts none of a flood that guesses port and id', async (t) => {
    assert.ok(state.lab !== undefined)
    const result = await state.lab.attack({ kind: 'flood', rate: RATE }, SECONDS)
    t.diagnostic(`${result.sent} forged, ${result.true} true answers`)
    assert.ok(result.sent > 10_000)
    assert.equal(result.forged, 0)
    assert.equal(result.errors, 0, 'every query is answered')
    assert.ok(result.true >= 10)
  })

  it('accepts the same answer under the true port and id', async () => {
    assert.ok(state.lab !== undefined)
    const result = await state.lab.attack({ kind: 'know' }, 1.5)
    assert.ok(result.sent > 0)
    assert.ok(result.forged > 0)
  })
})
