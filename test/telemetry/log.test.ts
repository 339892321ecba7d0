import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLog, type LogOptions } from '../../src/telemetry/log.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'

async function mkLog(given: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const clock = new FakeClock()
  const write = (line: string): void => void lines.push(line)
  const log = await openLog({ level: 'info', format: 'json', clock, write, ...given })
  return { log, lines, clock }
}

function fieldsOf(line: string | undefined): Record<string, unknown> {
  const parsed: unknown = JSON.parse(line ?? '')
  assert.ok(typeof parsed === 'object' && parsed !== null)
  return { ...parsed }
}

test('openLog writes one JSON line for each call, with time, level and fields', async () => {
  const { log, lines } = await mkLog()
  log.warn({ endpoint: 'shop', revision: 3 }, 'something')
  const { time, ...rest } = fieldsOf(lines[0])
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(rest, { level: 40, endpoint: 'shop', revision: 3, msg: 'something' })
  assert.ok(lines[0]?.endsWith('}\n'))
})

test('openLog leaves out lines below the level', async () => {
  const { log, lines } = await mkLog({ level: 'error' })
  log.debug({}, 'a')
  log.info({}, 'b')
  log.warn({}, 'c')
  log.limited('cause', {}, 'd')
  log.error({}, 'e')
  assert.deepEqual(
    lines.map((line) => fieldsOf(line)['msg']),
    ['e'],
  )
})

test('openLog writes for people on one line, without raw control characters of a field', async () => {
  const { log, lines } = await mkLog({ format: 'pretty' })
  log.info({ endpoint: 'a\n\u001b[31mb' }, 'hello')
  assert.equal(lines.length, 1)
  const [line = ''] = lines
  assert.match(line, /INFO: hello \{"endpoint":"a\\n\\u001b\[31mb"\}\n$/)
  assert.equal(line.split('\n').length, 2)
})

test('Log.limited writes a cause once a minute, with the number of lines that it left out', async () => {
  const { log, lines, clock } = await mkLog()
  for (let i = 0; i < 5; i++) log.limited('full', { count: i }, 'table is full')
  log.limited('other', {}, 'something else')
  clock.advance(59_999)
  log.limited('full', { count: 5 }, 'table is full')
  clock.advance(1)
  log.limited('full', { count: 6 }, 'table is full')
  const shown = lines.map((line) => {
    const { count, cause, suppressed } = fieldsOf(line)
    return [cause, count, suppressed]
  })
  assert.deepEqual(shown, [
    ['full', 0, undefined],
    ['other', undefined, undefined],
    ['full', 6, 5],
  ])
})

test('Log.limited remembers 256 causes and stays silent about more', async () => {
  const { log, lines } = await mkLog()
  for (let i = 0; i < 300; i++) log.limited(`cause ${i}`, {}, 'x')
  assert.equal(lines.length, 256)
})

test('SILENT writes nothing', () => {
  SILENT.error({ error: 'x' }, 'y')
  SILENT.limited('a', {}, 'b')
  SILENT.flush()
})
