import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type AuditSettings, NO_AUDIT_SETTINGS } from '../../src/enforcement/audit-control.ts'
import { readSettings, SettingsKeeper, writeSettings } from '../../src/state/settings.ts'
import { FakeClock } from '../support/fake-clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-settings-'))
after(() => rmSync(folder, { recursive: true }))

const SETTINGS: AuditSettings = {
  node: true,
  endpoints: { one: true, two: false },
  selectors: [{ matchLabels: { app: 'shop', 'k8s:tier': 'web' }, on: true }],
}

test('readSettings reads what writeSettings wrote, and only its owner can read the file', () => {
  const file = join(folder, 'state', 'settings.json')
  for (const settings of [SETTINGS, NO_AUDIT_SETTINGS, { ...SETTINGS, node: false }]) {
    writeSettings(file, settings)
    const { audit, fault } = readSettings(file)
    assert.deepEqual([{ ...audit }, fault], [{ ...settings, node: settings.node }, undefined])
  }
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(folder, 'state')), ['settings.json'])
})

test('readSettings takes a missing file as no settings, without a fault', () => {
  assert.deepEqual(readSettings(join(folder, 'none.json')), {
    audit: NO_AUDIT_SETTINGS,
    fault: undefined,
  })
})

const BAD: readonly (readonly [what: string, text: string])[] = [
  ['nothing', ''],
  ['a cut file', '{"version":1,"audit":{"endpoi'],
  ['another version', '{"version":2,"audit":{"endpoints":{},"selectors":[]}}'],
  ['no object', '[1]'],
  [
    'a node that is neither on nor off',
    '{"version":1,"audit":{"node":1,"endpoints":{},"selectors":[]}}',
  ],
  ['an endpoint that is neither', '{"version":1,"audit":{"endpoints":{"a":"on"},"selectors":[]}}'],
  ['a list for endpoints', '{"version":1,"audit":{"endpoints":[],"selectors":[]}}'],
  [
    'a selector with a number',
    '{"version":1,"audit":{"endpoints":{},"selectors":[{"on":true,"matchLabels":{"a":1}}]}}',
  ],
]

for (const [what, text] of BAD) {
  test(`readSettings skips ${what} and reports it`, () => {
    const file = join(folder, 'bad.json')
    writeFileSync(file, text)
    const { audit, fault } = readSettings(file)
    assert.deepEqual(audit, NO_AUDIT_SETTINGS)
    assert.match(fault ?? '', /bad\.json: found no settings that this version understands$/)
  })
}

test('readSettings reports an unreadable file', () => {
  const file = join(folder, 'folder.json')
  mkdirSync(file)
  const { audit, fault } = readSettings(file)
  assert.deepEqual(audit, NO_AUDIT_SETTINGS)
  assert.match(fault ?? '', /folder\.json: cannot read: EISDIR/)
})

/** A keeper whose file cannot be written while `blocked` exists, a folder of its name. */
function mkKeeper(name: string) {
  const file = join(folder, name)
  const clock = new FakeClock()
  const faults: string[] = []
  const keeper = new SettingsKeeper({ file, clock, onFault: (reason) => faults.push(reason) })
  return { file, blocked: `${file}.new`, clock, faults, keeper }
}

test('SettingsKeeper writes refused settings as soon as the disk accepts them', () => {
  const { file, blocked, clock, faults, keeper } = mkKeeper('later.json')
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  mkdirSync(blocked)
  keeper.save({ ...NO_AUDIT_SETTINGS, node: false })
  assert.equal(keeper.isFailing, true)
  assert.match(faults.join(), /EISDIR/)
  assert.equal(readSettings(file).audit.node, true, 'a restart would restore this')
  clock.advance(20_000)
  assert.ok(faults.length > 3, 'tried again')
  rmdirSync(blocked)
  clock.advance(5000)
  assert.equal(keeper.isFailing, false)
  assert.equal(readSettings(file).audit.node, false)
})

test('SettingsKeeper tries once more at its end', () => {
  const { file, blocked, keeper } = mkKeeper('last.json')
  mkdirSync(blocked)
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  rmdirSync(blocked)
  keeper.stop()
  assert.equal(readSettings(file).audit.node, true)
})

test('SettingsKeeper writes settings again when the folder in the place of their file is removed', () => {
  const { file, clock, faults, keeper } = mkKeeper('replaced.json')
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  assert.deepEqual(keeper.look(), [], 'in its place')
  rmSync(file)
  mkdirSync(file)
  assert.deepEqual(keeper.look(), [file])
  assert.equal(keeper.isFailing, true)
  assert.match(faults.join(), /EISDIR/)
  assert.deepEqual(keeper.look(), [], 'reported once')
  rmdirSync(file)
  clock.advance(5000)
  assert.equal(keeper.isFailing, false)
  assert.equal(readSettings(file).audit.node, true)
})

test('SettingsKeeper leaves no file open that a full disk refused to fill', () => {
  const { blocked, clock, faults, keeper } = mkKeeper('full.json')
  symlinkSync('/dev/full', blocked)
  const before = readdirSync('/proc/self/fd').length
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  clock.advance(20_000)
  assert.match(faults.join(), /ENOSPC/)
  assert.equal(readdirSync('/proc/self/fd').length, before)
  keeper.stop()
})
