// Answers with sources that do not exist: 100,000 of them, beside a resolver of the host on port 53, and longer than a frame.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canUseLab } from '../../support/labs/lab.ts'
import type { Pod, PodLab } from '../../support/labs/lab-pod.ts'
import { nativeIsLacking } from '../../support/open-sockets.ts'
import {
  ask,
  helper,
  repliesOf,
  SERVERS,
  tproxyLab,
  withTproxy,
} from '../../support/labs/udp-lab.ts'

const skip = canUseLab() ?? nativeIsLacking()

describe('Datagrams', { skip }, () => {
  let lab: PodLab

  before(async () => {
    lab = await tproxyLab(1)
  })

  after(async () => {
    await lab.close()
  })

  function podAt(number: number): Pod {
    return lab.pods[number] ?? assert.fail('no such pod')
  }

  it('Datagrams answers for 100,000 asked servers with one socket', async () => {
    await withTproxy(lab.node, undefined, async (listener) => {
      const { host } = podAt(0)
      for (const first of ['10.96.0.0', 'fd00:96::']) {
        const [node = '', ...args] = helper('udp-asker')
        const count = first.includes(':') ? 5000 : 100_000
        const { stdout, stderr } = await host.run(node, [...args, first, String(count)], {
          limitMs: 60_000,
        })
        assert.equal(stdout, `asked ${count} answered ${count} foreign 0\n`, stderr)
      }
      const replies = await repliesOf(listener, host, SERVERS[0])
      assert.equal(replies, 'opened 2 raw 0 failed 0')
    })
  })

  it('Datagrams answers beside a resolver of the host on port 53 of every address', async () => {
    for (const [kind, expected] of [
      ['alone', 'opened 0 raw 2 failed 0'],
      ['shared', 'opened 2 raw 0 failed 0'],
    ] as const) {
      await withTproxy(lab.node, [kind], async (listener, resolvers) => {
        const { host } = podAt(0)
        for (const server of SERVERS) assert.equal(await ask(host, server), 'REFUSED', server)
        const replies = await repliesOf(listener, host, SERVERS[0])
        assert.equal(replies, expected, kind)
        assert.equal(
          await ask(lab.node, '127.0.0.1', 'a.test', ['+tries=1', '+time=1']).then(isSilent),
          true,
        )
        assert.match(resolvers[0]?.stdout ?? '', /^asked$/m, 'its own queries reach it')
        assert.doesNotMatch(resolvers[1]?.stdout ?? '', /asked/, 'no other query reaches it')
      })
    }
  })

  it('Datagrams sends answers of 4,096 octets whole, as socket and as packets', async () => {
    for (const resolver of [undefined, ['alone']]) {
      await withTproxy(lab.node, resolver, async () => {
        for (const server of SERVERS) {
          for (const size of [1472, 1473, 2001, 4096]) {
            const more = ['+bufsize=4096', '+tries=1', '+time=3']
            const text = await ask(podAt(0).host, server, `size${size}.test`, more)
            // The octets behind the question are no records. dig reports that after it got all of them.
            assert.match(text, /^REFUSED$|extra bytes at end|malformed/i, `${size} from ${server}`)
          }
        }
      })
    }
  })
})

function isSilent(text: string): boolean {
  return /timed out|no servers could be reached/.test(text)
}
