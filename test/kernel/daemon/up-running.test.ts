// A workload that already runs and asks while `namegate up` starts. It asks often, so that a moment without interception loses a query.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4 } from '../../support/labs/lab-pod.ts'
import { UpLab } from '../../support/labs/up-lab.ts'
import { canUseSteadyDns, resultOf, SteadyDns } from '../../support/peers/steady-dns.ts'

const LIMIT_MS = 90_000
/** Queries a second. A start leaves packets of two milliseconds to chance if its steps are in the wrong order. */
const RATE = 1000
const NAMES = { 'an allowed name': 'allowed', 'a refused name': 'refused' } as const

describe(
  'a workload that asks while namegate up starts',
  { skip: canUseNamegate() ?? canUseSteadyDns() ?? false },
  () => {
    let lab: UpLab
    let dns: SteadyDns

    before(async () => {
      lab = new UpLab(1)
      dns = new SteadyDns()
      await dns.serve(lab.hosts.internet, DNS_4)
    })
    after(async () => await lab.close())

    for (const [title, name] of Object.entries(NAMES)) {
      it(`loses no query for ${title}`, async () => {
        const { host } = lab.pod(0)
        const asking = dns.start(host, DNS_4, name, RATE)
        const run = lab.up(DNS_4, '--netns', host.namespace, '--allow', '*.allowed.test')
        await run.protects()
        asking.kill('SIGTERM')
        const asked = await asking.ended(LIMIT_MS)
        const ended = await run.end()
        assert.ok(asked, 'the load ended')
        const { sent, lost } = resultOf(asked)
        assert.deepEqual({ isAsking: sent > 0, lost }, { isAsking: true, lost: 0 })
        assert.doesNotMatch(ended?.stdout ?? '', /reached no listener/)
      })
    }
  },
)
