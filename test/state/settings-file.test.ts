import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { NO_AUDIT_SETTINGS, type AuditSettings } from '../../src/enforcement/audit-control.ts'
import { readSettings, writeSettings } from '../../src/state/settings-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-settings-'))
after(() => rmSync(folder, { recursive: true }))

const SETTINGS: AuditSettings = {
  node: true,
  endpoints: { one: true, two: false },
  selectors: [{ matchLabels: { app: 'shop', 'k8s:tier': 'web' }, on: true }],
}

test('readSettings reads what writeSettings wrote, which only its owner may read', () => {
  const file = join(folder, 'state', 'settings.json')
  for (const settings of [SETTINGS, NO_AUDIT_SETTINGS, { ...SETTINGS, node: false }]) {
    writeSettings(file, settings)
    const { audit, fault } = readSettings(file)
    assert.deepEqual([{ ...audit }, fault], [{ ...settings, node: settings.node }, undefined])
  }
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(folder, 'state')), ['settings.json'])
})

test('readSettings takes a file that is not there for no settings, and that is no fault', () => {
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
  test(`readSettings passes over ${what} and says so`, () => {
    const file = join(folder, 'bad.json')
    writeFileSync(file, text)
    const { audit, fault } = readSettings(file)
    assert.deepEqual(audit, NO_AUDIT_SETTINGS)
    assert.match(fault ?? '', /bad\.json: found no settings that this version understands$/)
  })
}

test('readSettings says so when what is there cannot be read', () => {
  const file = join(folder, 'folder.json')
  mkdirSync(file)
  const { audit, fault } = readSettings(file)
  assert.deepEqual(audit, NO_AUDIT_SETTINGS)
  assert.match(fault ?? '', /folder\.json: cannot read: EISDIR/)
})
