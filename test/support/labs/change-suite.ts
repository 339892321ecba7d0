// Changes of the process that no client and no flow may notice: a take-over, a restart behind sockets that outlive the daemon, and a
// kill. Clients ask from one port each, once per query, and some names are new.
// Each change happens once at a small rate. NAMEGATE_TAKE_OVERS=TIMES,UDP,TCP (such as 50,20000,1000) does more.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChangeSite, type ChangeCount, type ChangeSiteOptions } from './change-site.ts'
import { canUseNamegate } from './lab-namegate.ts'

const [TIMES = 1, UDP_RATE = 300, TCP_RATE = 50] = (
  process.env['NAMEGATE_TAKE_OVERS']?.split(',') ?? []
).map(Number)
const RATES = { udp: UDP_RATE, tcp: TCP_RATE, flows: 1000 }
/** Pause between two changes. */
const PAUSE_MS = 500
/** A daemon is slower just after its start. Another test measures that. */
const WARM_UP_MS = 1500
/** The retry time of resolv.conf(5). */
const RETRY_MS = 5000

type Place = Pick<ChangeSiteOptions, 'interception' | 'datapath'>

export function changeSuite(place: Place): void {
  const { interception, datapath } = place
  const limits = { timeout: 60_000 + TIMES * 20_000 }
  describe(`namegate, ${interception}, ${datapath}`, { skip: canUseNamegate() ?? false }, () => {
    it('loses no query and no packet in a take-over', limits, async (t) => {
      const run = await changes(place, false, { keepsConnections: true }, async (site) => {
        await site.takeOver()
      })
      printCounts(t, 'take-overs', run)
      lostNothing(run)
    })

    it('loses no query and no packet in a restart behind its sockets', limits, async (t) => {
      const run = await changes(place, true, { keepsConnections: false }, async (site) => {
        await site.restart('SIGTERM')
      })
      printCounts(t, 'restarts', run)
      lostNothing(run)
    })

    it('after a kill, clients ask again at most once', limits, async (t) => {
      const asks = { keepsConnections: false, retryMs: RETRY_MS }
      const run = await changes(place, true, asks, async (site) => await site.restart('SIGKILL'))
      printCounts(t, 'kills', run)
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

function printCounts(
  t: TestContext,
  what: string,
  { udp, tcp, flows, overruns }: ChangeCount,
): void {
  const seconds = flows.seconds.toFixed(1)
  t.diagnostic(
    `${TIMES} ${what} in ${seconds} s; UDP ${udp.answered} of ${udp.sent} answered, ${udp.refused} refused, slowest ${udp.slowestMs.toFixed(0)} ms, ${udp.retried} asked again, at most ${udp.mostRetries} times; TCP ${tcp.answered} of ${tcp.sent}, ${tcp.refused} refused, ${tcp.closed} closed; flows: ${flows.lost} of ${flows.sent} lost, ${flows.passed} of ${flows.forbidden} denied passed; sockets without room: ${overruns}`,
  )
}
