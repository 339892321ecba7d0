import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { NO_AUDIT_SETTINGS } from '../../src/enforcement/audit-control.ts'
import { readSettings } from '../../src/state/settings-file.ts'
import { SettingsKeeper } from '../../src/state/settings-keeper.ts'
import { FakeClock } from '../support/fake-clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-settings-'))
after(() => rmSync(folder, { recursive: true }))

/** A keeper whose file cannot be written while `blocked` is there: a folder of its name. */
function mkKeeper(name: string) {
  const file = join(folder, name)
  const clock = new FakeClock()
  const faults: string[] = []
  const keeper = new SettingsKeeper({ file, clock, onFault: (reason) => faults.push(reason) })
  return { file, blocked: `${file}.new`, clock, faults, keeper }
}

test('SettingsKeeper writes settings that the disk refused as soon as it takes them', () => {
  const { file, blocked, clock, faults, keeper } = mkKeeper('later.json')
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  mkdirSync(blocked)
  keeper.save({ ...NO_AUDIT_SETTINGS, node: false })
  assert.equal(keeper.isFailing, true)
  assert.match(faults.join(), /EISDIR/)
  assert.equal(readSettings(file).audit.node, true, 'what a restart would bring back')
  clock.advance(20_000)
  assert.ok(faults.length > 3, 'tried again')
  rmdirSync(blocked)
  clock.advance(5000)
  assert.equal(keeper.isFailing, false)
  assert.equal(readSettings(file).audit.node, false)
})

test('SettingsKeeper tries once more at the end', () => {
  const { file, blocked, keeper } = mkKeeper('last.json')
  mkdirSync(blocked)
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  rmdirSync(blocked)
  keeper.stop()
  assert.equal(readSettings(file).audit.node, true)
})

test('SettingsKeeper writes settings anew when what took the place of their file has gone', () => {
  const { file, clock, faults, keeper } = mkKeeper('replaced.json')
  keeper.save({ ...NO_AUDIT_SETTINGS, node: true })
  assert.deepEqual(keeper.look(), [], 'in its place')
  rmSync(file)
  mkdirSync(file)
  assert.deepEqual(keeper.look(), [file])
  assert.equal(keeper.isFailing, true)
  assert.match(faults.join(), /EISDIR/)
  assert.deepEqual(keeper.look(), [], 'told once')
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
