// A client asks 100,000 different addresses over each family. Most of them have no server. Every answer has the asked address as its
// source, and namegate uses at most `limits.reply-sockets` sockets.

import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { podLab, startHelperNow } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const NAME = 'www.shop.test'
const COUNT = 100_000
const REPLY_SOCKETS = 256

describe('100,000 asked addresses', { skip: canUseNamegate() ?? false }, () => {
  const lab = podLab()
  const pod = lab.pods[0]!.host
  const namegate = new Namegate(lab, {
    policies: {},
    endpoints: [`{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: {}, interface: lxc1 }`],
    listenerItems: ['{ port: 10053, mode: tproxy }'],
    datapath: '{ kind: memory }',
    config: `intercept: { on-start: true }\nlimits: { reply-sockets: ${REPLY_SOCKETS} }`,
  })

  before(async () => {
    await lab.startNameServer({ names: { [NAME]: ['198.18.40.1'] } })
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  for (const family of ['4', '6'] as const) {
    it(`are the sources of their answers over IPv${family}`, { timeout: 240_000 }, async () => {
      const asker = startHelperNow(pod, 'asked-addresses.ts', [NAME, String(COUNT), family])
      const { stdout = '', stderr = 'it still runs' } = (await asker.ended(230_000)) ?? {}
      assert.deepEqual(JSON.parse(stdout || JSON.stringify(stderr)), {
        answered: COUNT,
        strange: 0,
      })
      const sockets = readdirSync(`/proc/${namegate.pid}/fd`).filter((fd) => isSocket(fd))
      assert.ok(sockets.length < REPLY_SOCKETS + 100, `sockets: ${sockets.length}`)
    })
  }

  function isSocket(fd: string): boolean {
    try {
      return readlinkSync(`/proc/${namegate.pid}/fd/${fd}`).startsWith('socket:')
    } catch {
      return false // closed meanwhile
    }
  }
})
