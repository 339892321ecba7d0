// Options with an empty value: every command refuses them with exit code 2. An unset variable in quotes makes such a value, as in
// `--config "$FILE"`.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { EXIT_USAGE } from '../../src/cli/command.ts'
import { findCommand } from '../../src/cli/commands.ts'

const home = process.cwd()
const folder = mkdtempSync(join(tmpdir(), 'ng-empty-'))

before(() => process.chdir(folder))
after(() => {
  process.chdir(home)
  rmSync(folder, { recursive: true })
})

const EMPTY: readonly (readonly [args: readonly string[], option: string])[] = [
  [['init', '--write', ''], '--write'],
  [['init', '--write='], '--write'],
  [['run', '--config', ''], '--config'],
  [['status', '--socket', ''], '--socket'],
  [['status', '-o', ''], '-o'],
  [['up', '--netns', '', '--audit'], '--netns'],
  [['up', '--netns', 'box', '--allow', 'a.b', '--allow', ''], '--allow'],
  [['ask', 'a.b', '--as', ''], '--as'],
  [['flows', '--not', '--name', ''], '--name'],
  [['policy', 'explain', '--policies', 'policy.yaml', '--labels', ''], '--labels'],
  [['resource', 'set', 'vm', '--address', '1.2.3.4', '--label', ''], '--label'],
  [['exec', '--policy', '', '--', 'true'], '--policy'],
  [['exec', '--allow', 'a.b', '--hide=', '--', 'true'], '--hide'],
]

for (const [args, option] of EMPTY) {
  test(`namegate ${args.map((word) => (word === '' ? "''" : word)).join(' ')} refuses the empty value`, async () => {
    const { code, text } = await namegate(args)
    assert.match(text, new RegExp(`^namegate: ${option} needs a value, found an empty one`))
    assert.equal(code, EXIT_USAGE)
    assert.deepEqual(readdirSync('.'), [], 'no file was written')
  })
}

/** Runs the command inside the test. */
async function namegate(words: readonly string[]): Promise<{ code: number; text: string }> {
  let text = ''
  const write = (more: string): void => void (text += more)
  const { command, args } = findCommand(words)
  const code = await command(args, { stdout: write, stderr: write })
  return { code, text }
}
