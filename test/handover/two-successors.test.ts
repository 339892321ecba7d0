// A successor that connects while another one takes over, or whose source ends: its error names the reason and the remedy.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/core/clock.ts'
import { Successor } from '../../src/handover/successor.ts'
import { isBuilt } from '../../src/native/native.ts'
import { withTakeOverSite, type TakeOverSite } from '../support/labs/take-over-site.ts'
import { FakeUpstream } from '../support/peers/upstream.ts'

const skip = isBuilt('posix') && isBuilt('udp') && isBuilt('tcp') ? false : 'no native part'
let upstream: FakeUpstream
before(async () => (upstream = await FakeUpstream.start()))
after(async () => await upstream.stop())

/** Connects at once. A process would need longer. */
function knock({ folder }: TakeOverSite): Successor {
  const config = loadConfig(folder.in('namegate.yaml'))
  return new Successor({ ...config, admin: { socket: folder.in('admin.sock') } }, systemClock)
}

describe('run --take-over', { skip }, () => {
  test('reports that another successor is under way', async () => {
    await withTakeOverSite(upstream, async (site) => {
      await site.serve()
      await site.falseSuccessor().untilOutput(/^given/m, 60_000)
      await assert.rejects(knock(site).given(), {
        name: 'UnavailableError',
        message:
          'Cannot take over: the running daemon is busy with another successor: try again when that one serves or has failed',
      })
    })
  })

  test('reports that the running daemon has ended', async () => {
    await withTakeOverSite(upstream, async (site) => {
      const first = await site.serve()
      first.process.kill('SIGSTOP')
      const given = knock(site).given()
      first.process.kill('SIGKILL')
      await assert.rejects(given, {
        name: 'UnavailableError',
        message:
          'Cannot take over: the running daemon has ended, or another successor has taken its place: try again with --take-over if a daemon serves now, and without --take-over if none serves',
      })
    })
  })
})
