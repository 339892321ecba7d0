// scripts/test.mjs: CI and people rely on the counts in its last lines, so this test checks them on a folder of tests that pass, fail, hang
// and crash.

import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { run } from './support/labs/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-runner-'))
after(() => rmSync(folder, { recursive: true }))

const HEAD = "import { describe, it, test, before } from 'node:test'\n"
const FILES: Readonly<Record<string, string>> = {
  'test/passes.test.ts': `${HEAD}
    test('f adds', () => {})
    test('f holds', async (t) => { await t.test('one', () => {}); await t.test('two: property', () => {}) })
    describe('suite', () => { it('works', () => {}); it('waits', { skip: 'no root' }, () => {}) })`,
  'test/fails.test.ts': `${HEAD}
    test('f throws', () => { throw new Error('broken') })
    test('f throws after its subtests', async (t) => { await t.test('good', () => {}); throw new Error('late') })
    describe('a hook', { concurrency: false }, () => { before(() => { throw new Error('hook') }); it('never', () => {}) })`,
  'test/crashes.test.ts': `${HEAD}test('f works', () => {})\nsetTimeout(() => process.exit(3), 300)`,
  'test/empty.test.ts': `${HEAD}`,
  'test/contract/a.test.ts': `${HEAD}test('contract', () => {})`,
  'test/conformance/a.test.ts': `${HEAD}test('conformance', () => {})`,
  'test/scenarios/a.test.ts': `${HEAD}test('scenario', () => {})`,
  'test/kernel/alone/hangs.test.ts': `${HEAD}test('hangs', async () => { await new Promise(() => setInterval(() => {}, 1000)) })`,
  'test/kernel/skips.test.ts': `${HEAD}describe('all', { skip: 'no root' }, () => { it('one', () => {}) })`,
}

const PROPERTIES = `${HEAD}import fc from 'fast-check'
    test('f is never 7', () => {
      fc.assert(fc.property(fc.integer({ min: 0, max: 99 }), (n) => n !== 7), { numRuns: 1 })
    })
    test('f counts', () => {
      let runs = 0
      fc.assert(fc.property(fc.nat(), () => { runs++ }), { numRuns: 5 })
      console.error('f ran ' + runs + ' times')
    })`

for (const [path, text] of Object.entries(FILES)) {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), text)
}
writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))

async function runTests(...args: readonly string[]): Promise<{ code: number; lines: string[] }> {
  const options = { cwd: folder, env: { NAMEGATE_TEST_LIMIT: '6' }, limitMs: 120_000 }
  const { code, stdout } = await run(
    process.execPath,
    [resolve('scripts/test.mjs'), ...args],
    options,
  )
  return { code, lines: stdout.trim().split('\n') }
}

test('scripts/test.mjs counts by kind, ends hung files and exits 1', async () => {
  const { code, lines } = await runTests()
  assert.equal(code, 1)
  assert.deepEqual(lines.slice(-10, -2), [
    'kind            tests   passed   failed  skipped',
    'unit               12        5        6        1',
    'property            1        1        0        0',
    'contract            1        1        0        0',
    'scenario            1        1        0        0',
    'conformance         1        1        0        0',
    'kernel              2        0        1        1',
    'skipped 2: no root',
  ])
  assert.equal(lines.at(-1), '9 passed, 7 failed, 2 skipped')
  assert.match(lines.join('\n'), /hung: ended after 6 s/)
  assert.match(lines.join('\n'), /test\/fails\.test\.ts:3:\d+/, 'a line of the source')
  assert.match(lines.join('\n'), /exit 3/)
  assert.match(lines.join('\n'), /has no test/)
})

test('scripts/test-seconds.json names files and folders of this tree', () => {
  const seconds = JSON.parse(readFileSync('scripts/test-seconds.json', 'utf8')) as object
  const gone = Object.keys(seconds).filter((path) => !existsSync(path))
  // A moved file only starts late. A whole run with --rank measures all files anew.
  assert.ok(gone.length <= 5, gone.join(', '))
})

test('scripts/test.mjs exits 0 when nothing failed', async () => {
  const { code, lines } = await runTests('passes', 'skips')
  assert.equal(code, 0)
  assert.equal(lines.at(-1), '4 passed, 0 failed, 2 skipped')
})

test('scripts/test.mjs exits 1 when nothing was run', async () => {
  const { code, lines } = await runTests('no-such-file')
  assert.equal(code, 1)
  assert.equal(lines.at(-1), '0 passed, 0 failed, 0 skipped')
})

test('scripts/test.mjs refuses wrong usage and an empty part, which would choose all files', async () => {
  for (const part of ['', '--no-such-option']) {
    const { code, lines } = await runTests(part)
    assert.deepEqual([code, lines], [2, ['']])
  }
  const { code, lines } = await runTests('--help')
  assert.deepEqual([code, lines[0]], [0, 'Usage: npm test [-- OPTION... PART...]'])
})

test('scripts/test.mjs --bail ends a file, and the run, at the first failure', async () => {
  const bailing = join(folder, 'test/bails')
  mkdirSync(bailing)
  const steps = ['one', 'two', 'three'].map(
    (name) =>
      `test('${name}', () => { console.log('at ${name}'); if ('${name}' === 'two') throw new Error('broken') })`,
  )
  writeFileSync(join(bailing, 'a.test.ts'), `${HEAD}${steps.join('\n')}`)
  const { code, lines } = await runTests('--bail', 'bails/')
  const said = lines.join('\n')
  assert.equal(code, 1)
  assert.match(said, /two: Error: broken/)
  assert.match(said, /at two/)
  assert.doesNotMatch(said, /at three/)
  const whole = await runTests('bails/')
  assert.equal(whole.lines.at(-1), '2 passed, 1 failed, 0 skipped')
  rmSync(bailing, { recursive: true })
})

test('scripts/test.mjs --property runs files with properties more often, and replays a failure', async () => {
  writeFileSync(join(folder, 'test/properties.test.ts'), PROPERTIES)
  const once = await runTests('--property', '--runs', '1x')
  assert.match(once.lines.join('\n'), /f ran 5 times/)
  const often = await runTests('--property', '--runs', '4000x')
  const said = often.lines.join('\n')
  assert.match(said, /f ran 20000 times/)
  assert.doesNotMatch(said, /broken|passes\.test/, 'a file without properties')
  const [, seed = '', path = ''] = /seed: (-?\d+), path: "([\d:]+)"/.exec(said) ?? []
  assert.deepEqual([often.code, seed !== ''], [1, true])
  const replayed = await runTests('--property', `--seed=${seed}`, '--path', path)
  assert.match(replayed.lines.join('\n'), /Property failed after 1 tests/)
  const refused = await runTests('--property', '--runs', 'many')
  assert.deepEqual([refused.code, refused.lines], [1, ['']])
})

const ONLY_TESTS = "import { test } from 'node:test'\n"
/** Files of a folder that share a process. */
const SHARED: Readonly<Record<string, string>> = {
  'test/names/a.test.ts': `${ONLY_TESTS}test('a passes', () => {})`,
  'test/names/b.test.ts': `${ONLY_TESTS}test('b fails', () => { throw new Error('broken') })`,
  'test/names/c.test.ts': `${ONLY_TESTS}test('c begins', () => {})\nsetTimeout(() => process.kill(process.pid, 'SIGKILL'), 300)`,
  'test/names/d.test.ts': `${ONLY_TESTS}test('d waits', async () => { await new Promise((done) => setTimeout(done, 1500)) })`,
  'test/names/e.test.ts': `${ONLY_TESTS}test('e passes', () => {})`,
}

test('scripts/test.mjs names the file of a shared process that failed, and the one that broke it', async () => {
  for (const [path, text] of Object.entries(SHARED)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const good = await runTests('names/a', 'names/d', 'names/e')
  assert.deepEqual([good.code, good.lines.at(-1)], [0, '3 passed, 0 failed, 0 skipped'])
  const { code, lines } = await runTests('names/')
  assert.deepEqual([code, lines.at(-1)], [1, '4 passed, 2 failed, 0 skipped'])
  assert.deepEqual(
    lines.map((line) => /^(?:FAIL|ok) +\S+ +\d+ passed/.exec(line)?.[0]).filter(Boolean),
    [
      'ok    test/names/a.test.ts  1 passed',
      'FAIL  test/names/b.test.ts  0 passed',
      'FAIL  test/names/c.test.ts  1 passed',
      'ok    test/names/d.test.ts  1 passed',
      'ok    test/names/e.test.ts  1 passed',
    ],
  )
})

const HOOKS = "import { after, before, test } from 'node:test'\n"
/** Files of a folder that share a process, with hooks of their own. */
const HOOKED: Readonly<Record<string, string>> = {
  'test/hooks/a.test.ts': `${HOOKS}let got = ''\nbefore(async () => { got = 'a' })\nafter(() => { got = '' })
    test('a has its hook', () => { if (got !== 'a') throw new Error(got) })`,
  'test/hooks/b.test.ts': `${HOOKS}before(() => { throw new Error('no room') })\ntest('b never runs', () => {})`,
  'test/hooks/c.test.ts': `${HOOKS}test('c never runs', () => {})\nthrow new Error('not loadable')`,
  'test/hooks/d.test.ts': `${HOOKS}test('d passes', () => {})\nafter(() => { throw new Error('not closed') })`,
  'test/hooks/e.test.ts': HOOKS,
  'test/hooks/f.test.ts': `${HOOKS}before(() => { console.log('f begins') })\ntest('f passes', () => {})`,
}

test('scripts/test.mjs gives each file of a shared process its own hooks, and names the file whose hook fails', async () => {
  for (const [path, text] of Object.entries(HOOKED)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const { code, lines } = await runTests('hooks/')
  assert.equal(code, 1)
  const said = /^(?:FAIL|ok) +\S+|^ +x +.*|Error: (?:no|not) .*/
  assert.deepEqual(lines.map((line) => said.exec(line)?.[0].replace(/ +/g, ' ')).filter(Boolean), [
    'ok test/hooks/a.test.ts',
    'FAIL test/hooks/b.test.ts',
    ' x b never runs',
    ' x (the file as a whole)',
    'Error: no room',
    'FAIL test/hooks/c.test.ts',
    ' x c never runs',
    ' x (the file as a whole)',
    'Error: not loadable',
    'FAIL test/hooks/d.test.ts',
    ' x (the file as a whole)',
    'Error: not closed',
    'FAIL test/hooks/e.test.ts',
    ' x (the file as a whole)',
    'ok test/hooks/f.test.ts',
  ])
})
