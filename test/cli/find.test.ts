// From words to commands, and what every command must have.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { COMMANDS, findCommand } from '../../src/cli/commands.ts'
import { readmeTable } from '../../src/cli/reference.ts'
import { UsageError } from '../../src/core/errors.ts'
import { objectIn, runCommand, type Ran } from '../support/nodes/command.ts'

async function run(...words: readonly string[]): Promise<Ran> {
  const { command, args } = findCommand(words)
  return await runCommand(command, ...args)
}

/** Its options end where the command begins, and it needs no config file. */
const OWN_OPTIONS = 'exec'

test('exec shows usage, options and examples, and names an unknown option', async () => {
  const { code, out, err } = await run(OWN_OPTIONS, '--help')
  assert.deepEqual([code, err], [0, ''])
  for (const part of [/^Usage: namegate exec/, /^Examples?:\n {2}/m, /-h, --help/]) {
    assert.match(out, part)
  }
  const wrong = await run(OWN_OPTIONS, '--confg', 'x')
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(wrong.err, /^namegate: unknown option "--confg".*\nUsage: /)
})

for (const { name } of COMMANDS.filter((each) => !['help', OWN_OPTIONS].includes(each.name))) {
  test(`${name} --help shows usage, options and examples and does nothing`, async () => {
    const { code, out, err } = await run(name, '--help')
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, new RegExp(`^Usage: namegate ${name}`))
    for (const part of [/^Examples?:\n {2}/m, /--config FILE/, /-h, --help/])
      assert.match(out, part)
    assert.deepEqual(await run('help', name), { code, out, err })
  })

  test(`${name} says which option was meant, exit code 2`, async () => {
    const { code, out, err } = await run(name, '--confg', 'x')
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, /^namegate: unknown option "--confg"; did you mean --config\?\nUsage: /)
  })
}

test('commandOf says what to write in place of an option with a fault', async () => {
  const rows: readonly (readonly [line: string, reason: string, why: string])[] = [
    [
      'up --netns',
      '--netns needs a value: write --netns NAME (a network namespace of `ip netns list`, or its path',
      'the value is missing',
    ],
    ['status -o', '-o needs a value: write -o json', 'the same of a short option'],
    ['status --config', '--config needs a value: write --config FILE', 'a common option'],
    [
      'flows --last -1',
      '--last needs a value, found -1: write --last N, or --last=-1 if this is the value',
      'the next word begins with a dash',
    ],
    [
      'up --allow --audit',
      '--allow needs a value, found --audit: write --allow TARGET, or --allow=--audit if this is the value',
      'the next word is an option',
    ],
    ['flows --follow=yes', '--follow takes no value: write --follow alone', 'a flag'],
    ['flows -1', 'unknown option "-1"', 'a digit is no option'],
  ]
  for (const [line, reason, why] of rows) {
    const { code, err } = await run(...line.split(' '))
    assert.equal(code, 2, why)
    assert.ok(err.startsWith(`namegate: ${reason}`), `${why}: ${err}`)
  }
})

test('findCommand says of an unknown command which one was meant', () => {
  const rows: readonly (readonly [words: readonly string[], reason: RegExp])[] = [
    [[], /no command/],
    [['statu'], /unknown command "statu"; did you mean status\?/],
    [['zzzzzzzz'], /unknown command "zzzzzzzz" \('namegate help' lists all\)/],
  ]
  for (const [words, reason] of rows) {
    assert.throws(
      () => findCommand(words),
      (error) => {
        assert.ok(error instanceof UsageError)
        assert.match(error.message, reason)
        return true
      },
    )
  }
})

test('helpCommand lists every command', async () => {
  for (const words of [['help'], ['--help'], ['-h'], ['help', '--help']]) {
    const { code, out } = await run(...words)
    assert.equal(code, 0)
    for (const { name, summary } of COMMANDS)
      assert.ok(out.includes(`  ${name} `) && out.includes(summary))
  }
})

test('README.md has the table of commands that is made from them', () => {
  const readme = readFileSync('README.md', 'utf8')
  const table = readmeTable(COMMANDS)
  assert.ok(readme.includes(`\n${table}\n`), `README.md should have:\n${table}`)
})

test('policyCommand shows its verbs, and help names them, too', async () => {
  const { out } = await run('policy', '--help')
  assert.match(out, /^ {2}policy lint +report rules that are valid but probably not intended$/m)
  assert.deepEqual(await run('help', 'policy', 'lint'), await run('policy', 'lint', '--help'))
})

test('policyCommand says what was meant', async () => {
  assert.match((await run('policy', 'chekc')).err, /did you mean check\?/)
  for (const words of [[], ['chekc']]) assert.equal((await run('policy', ...words)).code, 2)
})

test('runCommand refuses what it does not take', async () => {
  assert.equal((await run('run', 'now')).code, 2)
})

test('versionCommand prints the version of package.json', async () => {
  const { out } = await run('version')
  assert.match(out, /^namegate \d+\.\d+\.\d+\n$/)
  const { out: json } = await run('version', '-o', 'json')
  assert.equal(`namegate ${String(objectIn(json)['version'])}\n`, out)
})
