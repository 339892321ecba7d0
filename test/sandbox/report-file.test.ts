import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openReport } from '../../src/sandbox/report-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'ng-report-'))
after(() => rmSync(folder, { recursive: true }))

test('openReport writes into a file, which is empty before', () => {
  const file = join(folder, 'report.json')
  const report = openReport(file)
  assert.equal(readFileSync(file, 'utf8'), '')
  report.write({ version: 1 })
  assert.equal(readFileSync(file, 'utf8'), '{"version":1}\n')
})

test('openReport writes to an open descriptor, and leaves it open', () => {
  const file = join(folder, 'descriptor.json')
  const fd = openSync(file, 'w')
  openReport(String(fd)).write({ version: 1 })
  closeSync(fd)
  assert.equal(readFileSync(file, 'utf8'), '{"version":1}\n')
})

test('openReport refuses a target that cannot be written, at once', () => {
  const readable = openSync('/etc/passwd', 'r')
  const rows: readonly (readonly [target: string, reason: RegExp])[] = [
    ['/nowhere/report.json', /^Cannot write the report: ENOENT.*: see --report$/],
    ['999', /^Cannot write the report: descriptor 999 is not open$/],
    [String(readable), /descriptor \d+ is not open/],
  ]
  for (const [target, message] of rows) {
    assert.throws(() => openReport(target), { name: 'UnavailableError', message }, target)
  }
  closeSync(readable)
})
