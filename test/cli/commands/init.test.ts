// `namegate init`, with the real program: it writes a configuration that `config check` accepts, and replaces no file without --force.

import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { mkFolder } from '../../support/nodes/daemon-files.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'
import { run, type Output } from '../../support/labs/lab-process.ts'

const folder = mkFolder()
after(() => rmSync(folder, { recursive: true, force: true }))
const made = join(folder, 'made')

async function namegate(...args: readonly string[]): Promise<Output> {
  return await run(PROGRAM, args, { cwd: folder, limitMs: 60_000 })
}

test('init writes a configuration that config check accepts, and names the next command', async () => {
  const { code, stdout, stderr } = await namegate('init', '--write', 'made')
  assert.equal(code, 0, stderr)
  const [next = ''] = /^\S*namegate config check.*$/m.exec(stdout.replace(/^ +/gm, '')) ?? []
  assert.ok(next.endsWith(` --config ${made}/namegate.yaml`), stdout)
  assert.match(stdout, / run --config \S+\/namegate\.yaml$/m)
  const checked = await run('sh', ['-c', next], { cwd: folder, limitMs: 60_000 })
  assert.equal(checked.code, 0, checked.stderr)
})

test('init replaces no file without --force', async () => {
  const file = join(made, 'endpoints.yaml')
  writeFileSync(file, 'endpoints: [] # mine\n')
  const refused = await namegate('init', '--write', made)
  assert.equal(refused.code, 3)
  assert.match(refused.stderr, /namegate\.yaml exists: give --force/)
  assert.match(readFileSync(file, 'utf8'), /mine/)
  const forced = await namegate('init', '--write', made, '--force')
  assert.equal(forced.code, 0, forced.stderr)
  assert.doesNotMatch(readFileSync(file, 'utf8'), /mine/)
})

test('init ends with 3 when it cannot write, and leaves nothing', async () => {
  for (const place of [join(made, 'namegate.yaml/below'), '/proc/no-such/folder']) {
    const { code, stderr } = await namegate('init', '--write', place)
    assert.equal(code, 3)
    assert.match(stderr, /Cannot write the configuration: .*--write DIR/)
  }
})
