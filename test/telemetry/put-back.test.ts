import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLog } from '../../src/telemetry/log.ts'
import { PutBack } from '../../src/telemetry/put-back.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { objectIn } from '../support/nodes/command.ts'

const MINUTE_MS = 60_000

async function mkPutBack() {
  const clock = new FakeClock()
  const told: string[] = []
  const write = (line: string): void => {
    const { path, count } = objectIn(line)
    told.push(`${String(path)} ${String(count)}`)
  }
  const log = await openLog({ level: 'info', format: 'json', clock, write })
  return { clock, told, putBack: new PutBack(clock, log) }
}

test('PutBack reports the first file at once, and the number of further files once a minute', async () => {
  const { clock, told, putBack } = await mkPutBack()
  putBack.add('settings', 's.json')
  assert.deepEqual(told, ['s.json 1'])
  for (let i = 0; i < 3; i++) {
    clock.advance(1000)
    putBack.add('settings', 's.json')
  }
  assert.equal(told.length, 1)
  clock.advance(MINUTE_MS)
  assert.deepEqual(told, ['s.json 1', 's.json 3'])
  clock.advance(MINUTE_MS)
  assert.equal(told.length, 2, 'nothing came since')
  putBack.add('settings', 's.json')
  assert.deepEqual(told.slice(2), ['s.json 1'])
  assert.equal(putBack.counts.settings, 5)
})

test('PutBack reports each kind of file separately, and nothing after its stop', async () => {
  const { clock, told, putBack } = await mkPutBack()
  putBack.add('admin-socket', 'a')
  putBack.add('take-over-socket', 't')
  putBack.add('admin-socket', 'a')
  assert.deepEqual(told, ['a 1', 't 1'])
  putBack.stop()
  clock.advance(2 * MINUTE_MS)
  assert.equal(told.length, 2)
  assert.deepEqual(putBack.counts, {
    'admin-socket': 2,
    'take-over-socket': 1,
    settings: 0,
    resources: 0,
  })
})
