// A workload that already runs and asks while `namegate up` starts and ends. It asks often, so that a moment in which its queries reach
// neither namegate nor the server loses a query.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { UpLab } from '../../support/labs/up-lab.ts'
import { canUseSteadyDns } from '../../support/peers/steady-dns.ts'
import { SteadyLoad } from '../../support/peers/steady-load.ts'

/** Queries a second. If the steps of a start or an end are in the wrong order, packets of a few milliseconds are lost. */
const RATE = 1000
/** The load asks for names such as n1.u0.test. */
const ALLOWED = { 'allowed names': '*.u*.test', 'refused names': 'other.test' } as const

describe(
  'a workload that asks while namegate up starts and ends',
  { skip: canUseNamegate() ?? canUseSteadyDns() ?? false },
  () => {
    let lab: UpLab
    let load: SteadyLoad

    before(async () => {
      lab = new UpLab(1)
      load = new SteadyLoad()
      await load.serve(lab.hosts.internet, DNS_4)
    })
    after(async () => await lab.close())

    for (const [title, allowed] of Object.entries(ALLOWED)) {
      it(`loses no query for ${title}`, async () => {
        const { host } = lab.pod(0)
        load.begin({ host, server: DNS_4, udpRate: RATE, tcpRate: 0, keepsConnections: false })
        const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', allowed)
        await run.protects()
        const ended = await run.end()
        const [{ sent, answered, refused }] = await load.stop()
        assert.ok(sent > 0)
        assert.equal(sent - answered - refused, 0, `lost of ${sent}`)
        if (allowed === ALLOWED['allowed names']) assert.equal(refused, 0, `refused of ${sent}`)
        assert.doesNotMatch(ended?.stdout ?? '', /reached no listener/)
      })
    }
  },
)
