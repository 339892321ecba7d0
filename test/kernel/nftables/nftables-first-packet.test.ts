// The one promise over nftables, which confirms commits later: namegate holds the answer until the kernel has its address. A client whose
// `connect` is the next system call after `recv` loses no packet. Without a hold, and with a writer that is 30 ms late, it loses most.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { lost, retransmitted, show } from '../../support/peers/first-packets.ts'
import { cannotRun, Run } from '../../support/labs/first-packet-nftables.ts'

const skip = cannotRun ?? false
/** The default limit ends a hold after 100 ms. On a busy machine the writer can wait that long for a processor. */
const PATIENT = 'dns: { hold: { limit: 5s } }\n'

describe('first packet over nftables', { skip }, () => {
  let run: Run
  before(async () => {
    run = new Run(PATIENT)
    await run.start()
  })
  after(async () => await run.close())

  for (const [family, names] of [
    [4, 2000],
    [6, 400],
  ] as const) {
    it(`after the answer of ${names} new names is never lost, IPv${family}`, async (t) => {
      const before = await retransmitted(run.pod.host)
      const attempts = await run.ask(family, names)
      show(t, `IPv${family}`, attempts)
      assert.deepEqual(lost(attempts), [])
      assert.deepEqual(await retransmitted(run.pod.host), before)
    })
  }

  it('is not lost when connect does not block: the control of the run without a hold', async (t) => {
    const attempts = await run.ask(4, 400, 150, 4)
    show(t, 'held', attempts)
    assert.deepEqual(lost(attempts), [])
  })
})

describe('first packet over nftables without a hold', { skip }, () => {
  it('is lost for over half of 200 new names when the writer is 30 ms late', async (t) => {
    const run = new Run()
    try {
      await run.start({ writer: { stalledMs: [30], isHeld: false } })
      const attempts = await run.ask(4, 200, 150, 8)
      show(t, 'not held', attempts)
      assert.ok(lost(attempts).length > 100, `${lost(attempts).length} lost`)
    } finally {
      await run.close()
    }
  })
})
