import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parsePublish, readExecArguments } from '../../../src/cli/exec/arguments.ts'
import { parseAllow } from '../../../src/policy/allow-line.ts'
import { namegate, runCommand } from '../../support/nodes/command.ts'

const execCommand = namegate('exec')

test('readExecArguments takes options up to the command, and leaves the rest to it', () => {
  const rows: readonly (readonly [args: string, options: string, command: string])[] = [
    ['ls', '', 'ls'],
    ['ls --audit -h', '', 'ls --audit -h'],
    ['--audit ls', 'audit', 'ls'],
    ['--audit -- --odd', 'audit', '--odd'],
    ['--allow a.b --allow=c.d:1 -- x', 'allow=a.b,c.d:1', 'x'],
    ['--json --policy p x -- y', 'json policy=p', 'x -- y'],
    ['-h', 'help', ''],
  ]
  for (const [args, options, command] of rows) {
    const given = readExecArguments(args.split(' '))
    assert.ok(typeof given !== 'string', args)
    const texts = [...given.texts].map(([name, values]) => `${name}=${values.join()}`)
    assert.equal([...given.flags, ...texts].join(' '), options, args)
    assert.equal(given.command.join(' '), command, args)
  }
})

test('execCommand refuses wrong use with exit code 2, before anything is made', async () => {
  const rows: readonly (readonly [args: string, why: RegExp])[] = [
    ['', /exec needs a COMMAND/],
    ['--allow', /--allow needs a value/],
    ['--allow -- true', /--allow needs a value, found --/],
    ['--allow --audit true', /--allow needs a value, found --audit/],
    ['--alow x ls', /unknown option "--alow"/],
    ['--policy a --policy b ls', /--policy was given twice/],
    ['--allow a..b ls', /--allow "a\.\.b", column 3: found an empty label/],
    ['--allow a.b:x ls', /--allow "a\.b:x", column 5: found "x", expected a port/],
    ['--allow 10.0.0.1/8 ls', /--allow "10\.0\.0\.1\/8", column 1: host bits must be zero/],
    ['--allow [2001:db8::1]80 ls', /column 14: found "80", expected :PORT/],
    [
      '--allow https://git.example/a?b=1 ls',
      /--allow "https:.*", column 1: found a URL, expected a name: write git\.example:443\/tcp/,
    ],
    ['--allow http://git.example:8080 ls', /expected a name: write git\.example:8080\/tcp$/m],
    ['--allow git://git.example ls', /expected a name: write git\.example$/m],
    ['--grace soon ls', /--grace "soon": expected a duration: a whole number and ms, s, m, h or d/],
    ['--upstream nowhere ls', /--upstream "nowhere": expected an address, or ADDRESS:PORT/],
    ['--publish x ls', /--publish "x": expected \[ADDRESS:\]PORT/],
    ['--deny-response drop ls', /--deny-response "drop": expected refused or nxdomain/],
    ['--keep HOME ls', /--keep needs --env-clear/],
    ['--env-clear --keep A=b ls', /--keep "A=b": expected the name of a variable/],
    ['--hide /nowhere/at/all ls', /--hide "\/nowhere\/at\/all": there is no such path/],
    ['--hide / ls', /--hide \/: the working folder is in it/],
    ['--verbose --quiet ls', /--verbose and --quiet exclude each other/],
    ['--report a --report b ls', /--report was given twice/],
    ['--uplink tor ls', /--uplink "tor": expected pasta, slirp4netns or veth/],
  ]
  for (const [args, why] of rows) {
    const { code, out, err } = await runCommand(execCommand, ...args.split(' ').filter(Boolean))
    assert.deepEqual([code, out], [2, ''], args)
    assert.match(err, why)
  }
})

test('execCommand runs nothing when the suggestion could not be written', async () => {
  await assert.rejects(
    runCommand(execCommand, '--suggest', '/nowhere/p.yaml', '--', 'true'),
    /^UnavailableError: Cannot write the suggested policy: ENOENT.*--suggest/,
  )
})

test('execCommand runs nothing when the report could not be written', async () => {
  await assert.rejects(
    runCommand(execCommand, '--report', '/nowhere/report.json', '--', 'true'),
    /^UnavailableError: Cannot write the report: ENOENT.*--report/,
  )
})

test('execCommand reads the policy before it changes anything', async () => {
  const rows: readonly (readonly [file: string, why: RegExp])[] = [
    ['none.yaml', /^UsageError: --policy "none\.yaml": there is no such file or folder$/],
    ['package.json', /^UsageError: exec refuses the policy of --policy:\n {2}package\.json:\d+:/],
  ]
  for (const [file, why] of rows) {
    await assert.rejects(runCommand(execCommand, '--policy', file, '--', 'true'), why)
  }
})

test('execCommand prints its help with examples', async () => {
  const { code, out } = await runCommand(execCommand, '--help')
  assert.equal(code, 0)
  assert.match(out, /^Examples:\n {2}namegate exec /m)
})

test('docs/exec.md and the help show command lines that are taken', async () => {
  const { out } = await runCommand(execCommand, '--help')
  const text = `${readFileSync('docs/exec.md', 'utf8')}\n${out}\n${readFileSync('README.md', 'utf8')}`
  const lines = text
    .split('\n')
    .flatMap((line) => /^\s*(?:bin\/)?namegate exec (.*)$/.exec(line)?.[1] ?? [])
  assert.ok(lines.length >= 7)
  for (const line of lines) {
    const words = (line.replace(/\s+#.*$/, '').match(/'[^']*'|\S+/g) ?? []).map((word) =>
      word.replaceAll("'", ''),
    )
    const given = readExecArguments(words)
    assert.ok(typeof given !== 'string', line)
    assert.ok(given.command.length > 0, line)
    for (const allow of given.texts.get('allow') ?? [])
      assert.equal(parseAllow(allow).kind, 'ok', line)
  }
})

test('parsePublish reads address, port and inner port', () => {
  const rows: readonly (readonly [text: string, expected: string | undefined])[] = [
    ['8080', '127.0.0.1 8080 8080'],
    ['8080:80', '127.0.0.1 8080 80'],
    ['0.0.0.0:8080', '0.0.0.0 8080 8080'],
    ['192.0.2.1:8080:80', '192.0.2.1 8080 80'],
    ['[::1]:8080:80', '::1 8080 80'],
    ['0', undefined],
    ['65536', undefined],
    ['host:80', undefined],
    ['1.2.3:80', undefined],
    ['80/udp', undefined],
  ]
  for (const [text, expected] of rows) {
    const found = parsePublish(text)
    assert.equal(found && `${found.address} ${found.port} ${found.inner}`, expected, text)
  }
})
