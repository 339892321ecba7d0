// `run --take-over` gets a signal before it has taken over: the running daemon continues.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { isBuilt } from '../../src/native/native.ts'
import { until } from '../support/peers/client.ts'
import { withTakeOverSite } from '../support/labs/take-over-site.ts'
import { FakeUpstream } from '../support/peers/upstream.ts'

const skip = isBuilt('posix') && isBuilt('udp') && isBuilt('tcp') ? false : 'no native part'

let upstream: FakeUpstream
before(async () => (upstream = await FakeUpstream.start()))
after(async () => await upstream.stop())

/** True if the process handles SIGHUP, for which Node itself sets no handler. */
function listensToSignals(pid: number): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  const hangUp = 1n
  return (BigInt(`0x${caught ?? 0}`) & hangUp) !== 0n
}

describe('run --take-over', { skip }, () => {
  test('ends with 3 on a signal before it has taken over, and the running daemon continues', async () => {
    await withTakeOverSite(upstream, async (site) => {
      const first = await site.serve()
      const client = await site.client(first)
      // The stopped daemon does not answer, so the successor waits for it.
      first.process.kill('SIGSTOP')
      const successor = site.successor().process
      await successor.until(() => listensToSignals(successor.pid) || undefined, 'it listens')
      successor.kill('SIGTERM')
      await until('it heard', () => !successor.running || /stopping; /.test(successor.stderr))
      first.process.kill('SIGCONT')
      const ended = await successor.ended(60_000)
      assert.equal(ended?.code, 3, ended?.stderr)
      assert.match(ended.stderr, /Cannot take over: a signal .*the running daemon goes on/)
      assert.equal((await client.askSlowly('still.example')).rcode, 'NOERROR')
      const third = site.successor()
      await third.process.untilOutput(/namegate serves/, 60_000)
      assert.equal((await first.process.ended(30_000))?.code, 0)
    })
  })

  test('does not report that it is ready after it gave up', async () => {
    await withTakeOverSite(upstream, async (site) => {
      const first = await site.serve()
      const client = await site.client(first)
      const successor = site.falseSuccessor('give-up')
      await successor.untilOutput(/Cannot take over: a test ended the attempt; the running/, 60_000)
      // Otherwise the first daemon would let it continue.
      successor.kill('SIGKILL')
      await first.process.untilOutput(/the successor failed, this daemon goes on/, 20_000)
      assert.equal((await client.askSlowly('still.example')).rcode, 'NOERROR')
    })
  })
})
