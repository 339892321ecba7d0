import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemBootClock, systemClock } from '../../../src/core/clock.ts'
import { UnavailableError, UsageError } from '../../../src/core/errors.ts'
import { openState } from '../../../src/state/state-store.ts'
import { namegate, objectIn, runCommand } from '../../support/nodes/command.ts'
import { mkPair } from '../../support/nodes/state-files.ts'
import { toVersion2 } from '../../support/nodes/state-format-2.ts'

const stateCommand = namegate('state')

const root = mkdtempSync(join(tmpdir(), 'namegate-state-'))
after(() => rmSync(root, { recursive: true, force: true }))
const image = join(root, 'state', 'checkpoint.1')
const journal = join(root, 'state', 'journal.1')
const now = Math.floor(systemBootClock.seconds())

before(async () => {
  const folder = join(root, 'state')
  const { store } = openState({
    folder,
    clock: systemClock,
    boot: systemBootClock,
    pairsMax: 100,
    onFault: ({ message }) => assert.fail(message),
  })
  const writing = store.beginImage()
  writing?.numbers([{ id: 16_777_217, labels: ['fqdn:*.a.test', 'reserved:world'] }])
  writing?.document({ kind: 'endpoint', key: '3', text: '{"name":"shop\u001b[1m"}' })
  writing?.document({ kind: 'source-file', key: 'p.yaml', text: 'kind: x\n' })
  writing?.pair(mkPair(1, 1, now + 300))
  writing?.pair(mkPair(2, 3, now + 300))
  writing?.end()
  store.until(1, now + 600)
  store.flush()
  await store.close()
})

function copy(name: string, change: (octets: Uint8Array) => Uint8Array, of = image): string {
  const path = join(root, name)
  writeFileSync(path, change(readFileSync(of)))
  return path
}

test('stateCommand shows what a checkpoint and a journal hold', async () => {
  const { code, out, err } = await runCommand(stateCommand, 'show', image)
  assert.deepEqual([code, err], [0, ''])
  assert.match(out, /^kind: +checkpoint of generation 1, run 1$/m)
  assert.match(out, /^holds: +1 numbers, 2 pairs$/m)
  assert.match(out, /^16777217 +fqdn:\*\.a\.test reserved:world$/m)
  assert.match(out, /^p\.yaml +8$/m)
  assert.match(out, /^2 +n1\.xy\.test +10\.0\.0\.1 +\d{4}-\d\d-\d\dT[\d:.]+Z +1s$/m)
  assert.match(out, /^4 +n3\.xxxy\.test +a00:3:: +/m)
  assert.ok(out.includes('shop\\u{1b}'), 'control characters are shown, not sent')
  const changes = await runCommand(stateCommand, 'show', journal)
  assert.match(changes.out, /^kind: +journal of generation 1, run 1, from an empty start$/m)
  assert.match(changes.out, /^records: .*1 until.*; 1 about pairs of earlier files$/m)
})

test('stateCommand shows with -o json one object with times as RFC 3339', async () => {
  const { code, out } = await runCommand(stateCommand, 'show', image, '-o', 'json')
  assert.equal(code, 0)
  const { kind, generation, numbers, endpoints, sourceFiles, pairs, fault } = objectIn(out)
  assert.deepEqual([kind, generation, fault], ['checkpoint', 1, null])
  assert.deepEqual(numbers, [{ id: 16_777_217, labels: ['fqdn:*.a.test', 'reserved:world'] }])
  assert.deepEqual(endpoints, [{ key: '3', text: '{"name":"shop\u001b[1m"}' }])
  assert.deepEqual(sourceFiles, [{ file: 'p.yaml', text: 'kind: x\n' }])
  assert.ok(Array.isArray(pairs) && pairs.length === 2)
  const [first] = pairs.map((pair) => objectIn(JSON.stringify(pair)))
  const { until, ...rest } = first ?? {}
  assert.deepEqual(rest, { endpoint: 2, name: 'n1.xy.test', address: '10.0.0.1', grace: 1 })
  const away = Date.parse(String(until)) - (systemClock.wall() + 300_000)
  assert.ok(Math.abs(away) < 120_000, String(until))
})

test('stateCommand checks a file and says where it is not good, and what was expected', async () => {
  const good = await runCommand(stateCommand, 'check', image)
  assert.deepEqual([good.code, good.err], [0, ''])
  assert.match(
    good.out,
    /checkpoint\.1: good checkpoint of generation 1: 1 numbers, 2 pairs, 5 rec/,
  )
  const flip = (octets: Uint8Array): Uint8Array =>
    Uint8Array.from(octets, (octet, i) => (i === 90 ? octet ^ 1 : octet))
  const rows: readonly (readonly [path: string, code: number, text: RegExp])[] = [
    [journal, 0, /journal\.1: good journal of generation 1/],
    [copy('flipped', flip), 1, /flipped: at octet 64: the checksum of a frame is wrong\n$/],
    [copy('short', (octets) => octets.slice(0, -1)), 1, /short: at octet 64: found \d+ octets of/],
    [
      copy('head', (octets) => octets.slice(0, 64)),
      1,
      /at octet 64: expected the end of the image/,
    ],
    [
      copy('text', () => Buffer.from('x'.repeat(99))),
      1,
      /at octet 0: expected the mark of a state/,
    ],
    [copy('nothing', () => new Uint8Array(0)), 1, /at octet 0: found 0 octets, expected a header/],
    [copy('new', toVersion2), 1, /octet 8: written by a newer version of namegate: format 2, this/],
    [
      copy('killed', (octets) => octets.slice(0, -1), journal),
      0,
      /killed: at octet \d+: found \d+ octets of a frame.*: no fault: the last write was cut .*\n.*killed: good journal/,
    ],
  ]
  for (const [path, code, text] of rows) {
    const ran = await runCommand(stateCommand, 'check', path)
    assert.equal(ran.code, code, path)
    assert.match(ran.out, text, path)
    const json = objectIn((await runCommand(stateCommand, 'check', path, '-o', 'json')).out)
    assert.equal(json['good'], code === 0, path)
    const shown = await runCommand(stateCommand, 'show', path)
    assert.equal(shown.code, code, path)
    if (code === 1) assert.match(shown.err, /^namegate: .*: at octet \d+: /, path)
  }
})

test('stateCommand refuses wrong use, and says what it cannot read', async () => {
  for (const args of [[], ['show'], ['look', image], ['check', image, image]]) {
    assert.equal((await runCommand(stateCommand, ...args)).code, 2, args.join(' '))
  }
  await assert.rejects(async () => await runCommand(stateCommand, 'show', root), UnavailableError)
  const missing = join(root, 'missing')
  await assert.rejects(
    async () => await runCommand(stateCommand, 'show', missing),
    (error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, /^Cannot read .*missing: ENOENT/)
      return true
    },
  )
})
