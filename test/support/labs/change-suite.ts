// What no client and no flow may notice of: another process takes over, the daemon is stopped and started again behind
// sockets that outlive it, or it is killed. Clients ask from one port each, once, new names among them.
// Once at a small rate; NAMEGATE_TAKE_OVERS=TIMES,UDP,TCP (such as 50,20000,1000) does more.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChangeSite, type ChangeCount, type ChangeSiteOptions } from './change-site.ts'
import { canUseNamegate } from './lab-namegate.ts'

const [TIMES = 1, UDP_RATE = 1000, TCP_RATE = 100] = (
  process.env['NAMEGATE_TAKE_OVERS']?.split(',') ?? []
).map(Number)
const RATES = { udp: UDP_RATE, tcp: TCP_RATE, flows: 2000 }
/** Between two changes. */
const PAUSE_MS = 500
/** A daemon that has just begun is slower than one that runs, and that is another test's business. */
const WARM_UP_MS = 3000
/** As resolv.conf(5) has it. */
const RETRY_MS = 5000

type Place = Pick<ChangeSiteOptions, 'interception' | 'datapath'>

export function changeSuite(place: Place): void {
  const { interception, datapath } = place
  const limits = { timeout: 60_000 + TIMES * 20_000 }
  describe(`namegate, ${interception}, ${datapath}`, { skip: canUseNamegate() ?? false }, () => {
    it('is taken over without a query or packet lost', limits, async (t) => {
      const run = await changes(place, false, { keepsConnections: true }, async (site) => {
        await site.takeOver()
      })
      tell(t, 'take-overs', run)
      lostNothing(run)
    })

    it('is stopped and started behind its sockets without one lost', limits, async (t) => {
      const run = await changes(place, true, { keepsConnections: false }, async (site) => {
        await site.restart('SIGTERM')
      })
      tell(t, 'restarts', run)
      lostNothing(run)
    })

    it('is killed, and clients ask again at most once', limits, async (t) => {
      const asks = { keepsConnections: false, retryMs: RETRY_MS }
      const run = await changes(place, true, asks, async (site) => await site.restart('SIGKILL'))
      tell(t, 'kills', run)
      const { udp, flows } = run
      assert.equal(udp.answered, udp.sent)
      assert.ok(udp.mostRetries <= 1, `asked again ${udp.mostRetries} times`)
      assert.deepEqual([flows.lost, flows.passed], [0, 0])
    })
  })
}

async function changes(
  place: Place,
  supervised: boolean,
  asks: Parameters<ChangeSite['ask']>[0],
  change: (site: ChangeSite) => Promise<void>,
): Promise<ChangeCount> {
  const site = new ChangeSite({ ...place, supervised, rates: RATES })
  try {
    await site.start()
    await site.warmUp(WARM_UP_MS)
    site.ask(asks)
    for (let i = 0; i < TIMES; i++) {
      await sleep(PAUSE_MS)
      await change(site)
      await site.caughtUp()
    }
    await sleep(PAUSE_MS)
    return await site.count()
  } finally {
    await site.close()
  }
}

function lostNothing({ udp, tcp, flows }: ChangeCount): void {
  assert.deepEqual([udp.answered, tcp.answered, tcp.closed], [udp.sent, tcp.sent, 0])
  assert.deepEqual([flows.lost, flows.passed], [0, 0])
}

function tell(t: TestContext, what: string, { udp, tcp, flows, overruns }: ChangeCount): void {
  const seconds = flows.seconds.toFixed(1)
  t.diagnostic(
    `${TIMES} ${what} in ${seconds} s; UDP ${udp.answered} of ${udp.sent} answered, ${udp.refused} refused, slowest ${udp.slowestMs.toFixed(0)} ms, ${udp.retried} asked again, at most ${udp.mostRetries} times; TCP ${tcp.answered} of ${tcp.sent}, ${tcp.refused} refused, ${tcp.closed} closed; flows: ${flows.lost} of ${flows.sent} lost, ${flows.passed} of ${flows.forbidden} denied passed; sockets without room: ${overruns}`,
  )
}
