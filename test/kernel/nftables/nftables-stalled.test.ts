// The nftables writer stalls before every commit. Answers that need the commit wait, and no first packet is lost. Other answers are not
// delayed. An answer that waits too long ends as `dns.hold.on-limit` sets, and is counted.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { lost, retransmitted, show } from '../../support/peers/first-packets.ts'
import { cannotRun, Run } from '../../support/labs/first-packet-nftables.ts'

const skip = cannotRun ?? false
const STALLS = [
  [30, 20],
  [50, 20],
  [150, 8],
  [2500, 1],
] as const

describe('first packet over nftables with a stalled writer', { skip }, () => {
  let run: Run
  let asked = 1
  before(async () => {
    run = new Run('dns: { hold: { limit: 20s } }')
    await run.start({ writer: { stalledMs: STALLS.map(([ms]) => ms), isHeld: true } })
    const [known] = await run.ask(4, 1)
    assert.equal(known?.errno, 0)
  })
  after(async () => await run.close())

  for (const [stalledMs, names] of STALLS) {
    it(`is not lost, and other answers do not wait: ${stalledMs} ms`, async (t) => {
      const { daemon } = run.namegate
      if (stalledMs !== STALLS[0][0]) daemon.kill('SIGUSR2')
      await daemon.untilOutput(new RegExp(`^stalled ${stalledMs}$`, 'm'))
      const before = await retransmitted(run.pod.host)
      let isAsking = true
      const asking = run.ask(4, names).finally(() => (isAsking = false))
      let passed = 0
      while (isAsking && passed < 3) {
        assert.equal(await run.statusOf('n0.fresh.test'), 'NOERROR')
        if (isAsking) passed++
      }
      const attempts = await asking
      asked += names
      show(t, `stalled ${stalledMs} ms`, attempts)
      assert.deepEqual(lost(attempts), [])
      assert.deepEqual(await retransmitted(run.pod.host), before)
      assert.ok(passed > 0, 'a known name was answered while others were held')
    })
  }

  it('holds each new answer once, and none to the limit', async () => {
    const { held, overdue, heldOut } = await run.counters()
    assert.deepEqual({ held, overdue, heldOut }, { held: asked, overdue: 0, heldOut: 0 })
  })
})

describe(
  'a hold over nftables with a writer stalled for longer than dns.hold.limit',
  { skip },
  () => {
    it('ends in SERVFAIL at the limit, counted', async () => {
      const run = new Run('dns: { hold: { limit: 100ms } }')
      try {
        await run.start({ writer: { stalledMs: [2500], isHeld: true } })
        assert.equal(await run.statusOf('n0.fresh.test'), 'SERVFAIL')
        const { heldOut, heldOutServfail, overdue } = await run.counters()
        assert.deepEqual([heldOut, heldOutServfail, overdue], [1, 1, 1])
      } finally {
        await run.close()
      }
    })
  },
)
