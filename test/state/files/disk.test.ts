// The state folder on a real file system: a process that is killed during a write, a full disk, a folder that refuses writes.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemBootClock, systemClock } from '../../../src/core/clock.ts'
import type { StateFault } from '../../../src/state/faults.ts'
import { readFile } from '../../../src/state/files/disk.ts'
import { type OpenedState, openState } from '../../../src/state/state-store.ts'
import { readBootId } from '../../../src/state/stamp.ts'
import { mkPair, pairsOf } from '../../support/nodes/state-files.ts'
import { programArgs } from '../../support/labs/program.ts'

const root = mkdtempSync(join(tmpdir(), 'namegate-disk-'))
after(() => rmSync(root, { recursive: true, force: true }))
const KILLS = 6

function open(folder: string, faults: StateFault[] = []): OpenedState {
  const onFault = (fault: StateFault): void => void faults.push(fault)
  return openState({
    folder,
    clock: systemClock,
    boot: systemBootClock,
    pairsMax: 100_000,
    onFault,
  })
}

test('openState keeps everything over processes that end in order, in files that only their owner can read', async () => {
  const folder = join(root, 'new', 'folder')
  for (let life = 1; life <= 3; life++) {
    const { read, store } = open(folder)
    assert.deepEqual(read.passedOver, [])
    assert.equal(pairsOf(read).length, life - 1)
    assert.ok(read.state === undefined || read.state.isThisBoot)
    const image = store.beginImage()
    for (let row = 1; row < life; row++) image?.pair(mkPair(row, row))
    image?.end()
    store.pair(mkPair(life, life))
    await store.close()
  }
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  for (const name of readdirSync(folder)) {
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name)
  }
})

test('openState reads, after kill -9 during a write, everything that was reported as written', async () => {
  const folder = join(root, 'killed')
  for (let kill = 0; kill < KILLS; kill++) {
    const said = await runUntilKilled(folder, 500 + 701 * kill)
    const { read } = open(folder)
    const numbers = new Set(read.state?.numbers.map(({ id }) => id))
    assert.ok(said > 0)
    for (let id = 1; id <= said; id++) assert.ok(numbers.has(kill * 1_000_000 + id), `number ${id}`)
    assert.ok(read.passedOver.every(({ isNormal }) => isNormal))
    for (const [text] of pairsOf(read)) assert.match(text, /^\d n(\d+)\.x*y\.test /)
  }
})

/** The last number that the killed process had reported as written. */
async function runUntilKilled(folder: string, atLeast: number): Promise<number> {
  const child = spawn(process.execPath, programArgs('test/support/nodes/state-writer.ts', folder), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = 0
  child.stdout.setEncoding('utf8')
  let rest = ''
  for await (const text of child.stdout) {
    const lines = (rest + String(text)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) said = Math.max(said, Number(line))
    if (said >= atLeast) child.kill('SIGKILL')
  }
  return said
}

test('openState continues when the disk is full, reports the reason, and keeps the records before', async (t) => {
  const folder = join(root, 'full')
  mkdirSync(folder)
  const mount = ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder]
  if (spawnSync('mount', mount).status !== 0) return t.skip('may not mount a small file system')
  t.after(() => spawnSync('umount', [folder]))
  const faults: StateFault[] = []
  const { store } = open(folder, faults)
  for (let row = 1; row < 20_000; row++) store.pair(mkPair(row, row))
  for (let id = 1; id <= 50; id++) store.numbers([{ id, labels: ['fqdn:a.test'] }])
  store.flush()
  for (let id = 51; id <= 99; id++) store.numbers([{ id, labels: ['fqdn:a.test'] }])
  await store.close()
  const causes = faults.map(({ cause }) => cause)
  assert.ok(causes.length > 0 && causes.length <= 2, 'each once, of the two that a full disk has')
  assert.ok(causes.every((cause) => cause === 'no-space' || cause === 'short-write'))
  const { read } = open(folder)
  assert.ok((read.state?.numbers.length ?? 0) >= 50, 'those written before')
})

test('openState continues if the folder is a file, and reads nothing from it', async () => {
  const folder = join(root, 'file')
  writeFileSync(folder, 'x')
  const faults: StateFault[] = []
  const { read, store } = open(folder, faults)
  assert.equal(read.state, undefined)
  assert.equal(read.passedOver.length, 1)
  store.numbers([{ id: 1, labels: [] }])
  assert.equal(store.beginImage(), undefined)
  await store.close()
  assert.equal(faults.length, 1)
})

test('openState skips names that are no files, and files of other programs', async () => {
  const folder = join(root, 'odd')
  for (const name of ['checkpoint.9', 'journal.8'])
    mkdirSync(join(folder, name), { recursive: true })
  for (const name of ['lock', 'settings.json', 'checkpoint.x', 'journal.0', 'journal.1.new2']) {
    writeFileSync(join(folder, name), 'x')
  }
  const { read, store } = open(folder)
  assert.equal(read.state, undefined)
  assert.deepEqual(
    read.passedOver.map(({ file }) => file),
    ['checkpoint.9', 'journal.8', '.'],
  )
  store.pair(mkPair(1, 1))
  await store.close()
  assert.equal(pairsOf(open(folder).read).length, 1)
  assert.ok(existsSync(join(folder, 'journal.10')))
})

test('readFile refuses a file longer than its bound before it reads it', () => {
  const path = join(root, 'long')
  writeFileSync(path, 'xxxx')
  assert.equal(readFile(path, 4).length, 4)
  assert.throws(() => readFile(path, 3), /found 4 octets, expected at most 3/)
})

test('readBootId is the same every time, and not empty', () => {
  assert.deepEqual(readBootId(), readBootId())
  assert.equal(readBootId().length, 16)
  assert.ok(readBootId().some((octet) => octet !== 0))
})
