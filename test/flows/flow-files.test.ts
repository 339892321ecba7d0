import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { FlowFiles } from '../../src/flows/flow-files.ts'
import { readFlowFolder } from '../../src/flows/flow-folder.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'

const DAY = 86_400_000
const MIB = 1_048_576

interface Lab {
  readonly folder: string
  readonly files: FlowFiles
  readonly clock: FakeClock
  readonly logged: readonly string[]
}

async function withFiles(
  options: { readonly keepMs?: number; readonly maxOctets?: number; readonly below?: string },
  run: (lab: Lab) => Promise<void>,
): Promise<void> {
  const made = mkdtempSync(join(tmpdir(), 'flow-files-'))
  const folder = join(made, options.below ?? 'state/flows')
  // The clock starts in the past, so files with dates of the system are not older.
  const clock = new FakeClock(0, performance.timeOrigin)
  const logged: string[] = []
  const write = (line: string): void => void logged.push(line)
  const log = await openLog({ level: 'info', format: 'json', clock, write })
  const { keepMs = 7 * DAY, maxOctets = MIB } = options
  const files = new FlowFiles({ folder, clock, log, keepMs, maxOctets })
  try {
    await run({ folder, files, clock, logged })
  } finally {
    await Promise.all([files.stop(), Promise.resolve().then(() => clock.advance(2000))])
    rmSync(made, { recursive: true, force: true })
  }
}

async function readAll(folder: string): Promise<string> {
  let all = ''
  for await (const piece of readFlowFolder(folder)) all += piece
  return all
}

function names(folder: string): readonly string[] {
  return readdirSync(folder).toSorted()
}

test('FlowFiles makes its folder, appends lines to one file that only its owner can read, and reads them back', async () => {
  await withFiles({}, async ({ folder, files }) => {
    files.write('{"a":1}\n')
    files.write('{"a":2}\n{"a":3}\n')
    await files.settled()
    assert.deepEqual(names(folder), ['flows-0000000001.jsonl'])
    assert.equal(statSync(join(folder, 'flows-0000000001.jsonl')).mode & 0o777, 0o600)
    assert.equal(await readAll(folder), '{"a":1}\n{"a":2}\n{"a":3}\n')
    assert.equal(files.octets, 24)
  })
})

test('FlowFiles never uses more than max-size, and removes the oldest file first', async () => {
  await withFiles({ maxOctets: MIB }, async ({ folder, files }) => {
    for (let i = 0; i < 2000; i++) {
      const line = `${JSON.stringify({ i, padding: 'x'.repeat(990) })}\n`
      while (files.room < line.length) await files.settled()
      files.write(line)
    }
    await files.settled()
    const octets = names(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
    assert.ok(octets <= MIB && octets > MIB - 2 * 65_536, `${octets} octets`)
    assert.equal(files.octets, octets)
    assert.ok(files.counters.removedBySize > 0)
    const kept = (await readAll(folder)).trimEnd().split('\n')
    const numbers = kept.map((line) => {
      const parsed: unknown = JSON.parse(line)
      return typeof parsed === 'object' && parsed !== null && 'i' in parsed ? Number(parsed.i) : -1
    })
    const first = numbers[0] ?? 0
    assert.deepEqual(
      numbers,
      numbers.map((_, i) => first + i),
      'no hole',
    )
    assert.equal(numbers.at(-1), 1999)
  })
})

test('FlowFiles removes files without a write for `keep`, and ends a file after an eighth of it', async () => {
  await withFiles({ keepMs: 8 * DAY }, async ({ folder, files, clock }) => {
    for (let day = 0; day < 5; day++) {
      files.write(`{"day":${day}}\n`)
      await files.settled()
      clock.advance(DAY / 2 + 1)
    }
    assert.equal(names(folder).length, 3, 'half days: a file ends after two')
    clock.advance(6.5 * DAY)
    files.tick()
    await files.settled()
    assert.equal(files.counters.removedByAge, 1)
    assert.equal(await readAll(folder), '{"day":2}\n{"day":3}\n{"day":4}\n')
    clock.advance(2 * DAY)
    files.tick()
    await files.settled()
    assert.deepEqual(names(folder), [], 'the file of the last write is removed, too')
    files.write('{"day":9}\n')
    await files.settled()
    assert.equal(await readAll(folder), '{"day":9}\n')
  })
})

test('FlowFiles continues after the files of an earlier daemon, and leaves its last file as it is', async () => {
  await withFiles({ below: '.' }, async ({ folder, files }) => {
    writeFileSync(join(folder, 'flows-0000000041.jsonl'), '{"a":1}\n{"cut')
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    files.write('{"a":2}\n')
    await files.settled()
    assert.deepEqual(names(folder), [
      'flows-0000000041.jsonl',
      'flows-0000000042.jsonl',
      'notes.txt',
    ])
    assert.equal(await readAll(folder), '{"a":1}\n{"a":2}\n', 'without the cut line')
    assert.equal(files.octets, 13 + 8)
  })
})

test('FlowFiles reports a folder that refuses writes once, keeps the lines, and writes them when there is room', async () => {
  await withFiles({ below: '.' }, async ({ folder, files, logged }) => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'a file stands where the folder should be')
    for (let i = 0; i < 5; i++) {
      files.write(`{"i":${i}}\n`)
      await files.settled()
    }
    assert.equal(files.counters.failed, 5)
    assert.equal(logged.length, 1, 'once a minute and cause')
    assert.match(logged[0] ?? '', /ENOTDIR|EEXIST/)
    assert.ok(files.room > 0)
    rmSync(folder)
    files.tick()
    await files.settled()
    assert.equal(await readAll(folder), '{"i":0}\n{"i":1}\n{"i":2}\n{"i":3}\n{"i":4}\n')
  })
})

test('FlowFiles has room for only one batch that it cannot write', async () => {
  await withFiles({ below: 'x' }, async ({ folder, files }) => {
    writeFileSync(folder, '')
    const line = `${'x'.repeat(999)}\n`
    let taken = 0
    while (files.room >= line.length) {
      files.write(line)
      taken += line.length
    }
    assert.ok(taken <= 65_536)
    await files.settled()
    rmSync(folder)
    files.tick()
    await files.settled()
    assert.equal((await readAll(folder)).length, taken)
    assert.equal(files.room, 65_536)
  })
})

test('FlowFiles counts the files of a successor, and writes into none of them', async () => {
  await withFiles({ below: '.', maxOctets: MIB }, async ({ folder, files, clock }) => {
    files.write('{"a":1}\n')
    await files.settled()
    const other = 'flows-0000000002.jsonl'
    writeFileSync(join(folder, other), `${'x'.repeat(MIB - 10)}\n`)
    clock.advance(DAY)
    files.write('{"a":2}\n')
    await files.settled()
    assert.deepEqual(names(folder), [other, 'flows-0000000003.jsonl'], 'the oldest gave room')
    assert.equal(files.octets, MIB - 9 + 8)
  })
})

test('FlowFiles begins a new file when another program removed the folder', async () => {
  await withFiles({}, async ({ folder, files }) => {
    files.write('{"a":1}\n')
    await files.settled()
    rmSync(folder, { recursive: true })
    files.write('{"a":2}\n')
    await files.settled()
    assert.equal(await readAll(folder), '{"a":2}\n')
  })
})

test('readFlowFolder returns whole lines during a write, and nothing without a folder', async () => {
  await withFiles({ below: '.' }, async ({ folder }) => {
    assert.equal(await readAll(join(folder, 'none')), '')
    appendFileSync(join(folder, 'flows-0000000001.jsonl'), '{"a":1}\n{"b"')
    assert.equal(await readAll(folder), '{"a":1}\n')
    appendFileSync(join(folder, 'flows-0000000001.jsonl'), ':2}\n')
    assert.equal(await readAll(folder), '{"a":1}\n{"b":2}\n')
  })
})

test('FlowFiles keeps a file for the configured time when the clock is set a day forward or back', async () => {
  for (const jumpMs of [DAY, -DAY]) {
    await withFiles({ keepMs: 12 * 3_600_000 }, async ({ folder, files, clock }) => {
      const tickAfter = async (ms: number): Promise<void> => {
        clock.advance(ms)
        files.tick()
        await files.settled()
      }
      files.write('{"a":1}\n')
      await files.settled()
      clock.offsetMs = jumpMs
      await tickAfter(11 * 3_600_000)
      assert.equal(names(folder).length, 1, `not earlier, after ${jumpMs}`)
      await tickAfter(2 * 3_600_000)
      assert.equal(names(folder).length, 0, `not later, after ${jumpMs}`)
    })
  }
})

test('FlowFiles keeps a file with a future date for the whole time', async () => {
  await withFiles({ keepMs: DAY }, async ({ folder, files, clock }) => {
    files.write('{"a":1}\n')
    await files.settled()
    const next = new FlowFiles({ folder, clock, log: SILENT, keepMs: DAY, maxOctets: MIB })
    clock.offsetMs = -DAY
    for (const [hours, count] of [
      [23, 1],
      [2, 0],
    ] as const) {
      next.tick()
      await next.settled()
      clock.advance(hours * 3_600_000)
      next.tick()
      await next.settled()
      assert.equal(names(folder).length, count)
    }
  })
})
