import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { withInterceptLock } from '../../src/state/lock.ts'
import { isBuilt, loadPosix } from '../../src/native/native.ts'

const skip = isBuilt('posix') ? false : 'the native part is not built'

test(
  'withInterceptLock lets one caller work at a time, and the next when the first has ended or failed',
  { skip },
  async () => {
    const posix = loadPosix()
    const order: string[] = []
    const pause = async () => await turn()
    const job = async (name: string, fails = false) =>
      await withInterceptLock(posix, pause, async () => {
        order.push(`${name} begins`)
        for (let i = 0; i < 5; i++) await turn()
        order.push(`${name} ends`)
        if (fails) throw new Error('planted')
        return name
      })
    const failed = assert.rejects(job('one', true), /planted/)
    assert.deepEqual(await Promise.all([job('two'), job('three')]), ['two', 'three'])
    await failed
    for (let i = 0; i < order.length; i += 2) {
      assert.equal(order[i]?.replace('begins', 'ends'), order[i + 1], 'no other caller between')
    }
    assert.equal(order.length, 6)
  },
)

test('withInterceptLock gives up after its limit, and names the holder', { skip }, async () => {
  const posix = loadPosix()
  const pause = async () => await Promise.resolve()
  await withInterceptLock(posix, pause, async () => {
    await assert.rejects(
      withInterceptLock(posix, pause, async () => await Promise.resolve()),
      new RegExp(
        `Cannot change interception: process ${process.pid} is changing it: wait for it, or end it`,
      ),
    )
  })
})
