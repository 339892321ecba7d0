import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Command } from '../../src/cli/command.ts'
import { configJsonSchema } from '../../src/config/load.ts'
import { namegate } from '../support/nodes/command.ts'

const configCommand = namegate('config')
const matchCommand = namegate('match')
const policyCheckCommand = namegate('policy check')

const root = mkdtempSync(join(tmpdir(), 'namegate-cli-'))
after(() => rmSync(root, { recursive: true, force: true }))

async function run(
  command: Command,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let [out, err] = ['', '']
  const code = await command(args, {
    stdout: (text) => (out += text),
    stderr: (text) => (err += text),
  })
  return { code, out: out.replaceAll(`${root}/`, ''), err: err.replaceAll(`${root}/`, '') }
}

function mkFile(name: string, text: string): string {
  const path = join(root, name)
  writeFileSync(path, text)
  return path
}

const POLICY = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec: { endpointSelector: {}, egress: [{}] }
`

test('matchCommand says per name whether the pattern matches, 0 when all do', async () => {
  assert.deepEqual(await run(matchCommand, '*.cilium.io', 'www.Cilium.io', 'x.cilium.io.'), {
    code: 0,
    out: 'www.cilium.io  matches\nx.cilium.io    matches\n',
    err: '',
  })
  assert.deepEqual(await run(matchCommand, '*.cilium.io', 'a.b.cilium.io', 'a.cilium.io'), {
    code: 1,
    out: 'a.b.cilium.io  does not match\na.cilium.io    matches\n',
    err: '',
  })
})

test('matchCommand prints JSON only with -o json', async () => {
  const { code, out, err } = await run(matchCommand, '-o', 'json', 'A.io', 'a.io', 'b\\032.io')
  assert.deepEqual([code, err], [1, ''])
  assert.deepEqual(JSON.parse(out), [
    { pattern: 'a.io', name: 'a.io', matches: true },
    { pattern: 'a.io', name: 'b\\032.io', matches: false },
  ])
})

test('matchCommand refuses invalid patterns, names and arguments with 2', async () => {
  const rows: readonly (readonly [args: readonly string[], err: RegExp])[] = [
    [['a..b', 'x'], /^namegate: pattern "a\.\.b": found an empty label/],
    [['a.b', 'x..y'], /^namegate: name "x\.\.y": empty label\n$/],
    [['a.b', 'a.b', '.x'], /^namegate: name "\.x": /],
    [['a.b'], /^namegate: match needs a PATTERN and at least one NAME\nUsage: namegate match/],
    [[], /Usage: namegate match/],
    [['--bogus', 'a', 'b'], /^namegate: unknown option "--bogus"\nUsage: /],
    [['-o', 'yaml', 'a', 'b'], /^namegate: -o: found yaml, expected json\n/],
  ]
  for (const [args, expected] of rows) {
    const { code, out, err } = await run(matchCommand, ...args)
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    assert.match(err, expected)
  }
})

test('policyCheckCommand gives 0 for the example of the repository', async () => {
  assert.deepEqual(await run(policyCheckCommand, 'config/policies'), {
    code: 0,
    out: '1 policy in 1 file: no faults\n',
    err: '',
  })
})

test('policyCheckCommand says after a success that policy lint has findings, with exit code 0', async () => {
  const doubtful = 'docs/examples/doubtful.yaml'
  const { code, out, err } = await run(policyCheckCommand, doubtful)
  assert.equal(code, 0)
  assert.match(out, /^\d+ polic(?:y|ies) in 1 file: no faults\n$/)
  assert.equal(err, "'namegate policy lint' finds doubtful rules\n")
  const json = await run(policyCheckCommand, doubtful, '-o', 'json')
  assert.deepEqual(json, { code: 0, out: '[]\n', err: '' })
})

test('policyCheckCommand prints every fault as file:line:col: message and gives 1', async () => {
  const good = mkFile('good.yaml', POLICY)
  const bad = mkFile(
    'bad.yaml',
    `${POLICY.replace('name: p', 'name: q')}---\n${POLICY.replace('egress', 'egres')}`,
  )
  const again = mkFile('again.yaml', POLICY)
  assert.deepEqual(await run(policyCheckCommand, good, bad, again, good), {
    code: 1,
    out:
      'bad.yaml:8:19: metadata.name: found the CiliumNetworkPolicy default/p again, first at good.yaml:3\n' +
      'bad.yaml:9:7: spec: found no rule in egress or egressDeny, expected one; `egress: [{}]` denies everything\n' +
      'bad.yaml:9:31: unknown field spec.egres; did you mean "egress"?\n' +
      'again.yaml:3:19: metadata.name: found the CiliumNetworkPolicy default/p again, first at good.yaml:3\n',
    err: '4 faults; good: 1 policy in 1 file\n',
  })
  const { code, out } = await run(policyCheckCommand, '-o', 'json', join(root, 'none.yaml'))
  assert.equal(code, 2, 'a missing file is invalid input in every command')
  assert.deepEqual(JSON.parse(out), [
    {
      file: 'none.yaml',
      line: 1,
      column: 1,
      message: 'cannot read: ENOENT: no such file or directory',
    },
  ])
})

test('policyCheckCommand without a path is wrong use', async () => {
  const { code, out, err } = await run(policyCheckCommand)
  assert.deepEqual([code, out], [2, ''])
  assert.match(
    err,
    /^namegate: policy check needs at least one PATH, or --config\nUsage: namegate policy check/,
  )
})

test('policyCheckCommand reads files as the configuration of $NAMEGATE_CONFIG says', async () => {
  const policy = mkFile(
    'named-policy.yaml',
    POLICY.replace('egress: [{}]', 'egress: [{}], ingress: [{}]'),
  )
  const config = mkFile('named.yaml', 'policies: { paths: [named-policy.yaml], ingress: ignore }\n')
  const before = process.env['NAMEGATE_CONFIG']
  process.env['NAMEGATE_CONFIG'] = config
  try {
    for (const args of [[], [policy]]) {
      const { code, out } = await run(policyCheckCommand, ...args)
      assert.deepEqual([code, out], [0, '1 policy in 1 file: no faults\n'], args.join(' '))
    }
    const { code, out } = await run(
      policyCheckCommand,
      '--config',
      mkFile('empty.yaml', ''),
      policy,
    )
    assert.equal(code, 1, '--config is before it')
    assert.match(out, /^named-policy\.yaml:4:\d+: .*ingress/)
  } finally {
    if (before === undefined) delete process.env['NAMEGATE_CONFIG']
    else process.env['NAMEGATE_CONFIG'] = before
  }
})

test('configCommand check gives 0 or 2 with every fault', async () => {
  assert.deepEqual(await run(configCommand, 'check', 'config/namegate.yaml'), {
    code: 0,
    out: 'config/namegate.yaml: no faults\n',
    err: '',
  })
  assert.equal((await run(configCommand, 'check')).code, 0, 'the default file')
  const bad = mkFile('bad-config.yaml', 'log: { level: loud }\nlisteners: [{ prot: 1 }]\n')
  const expected = {
    code: 2,
    out:
      'bad-config.yaml:1:15: log.level: found "loud", expected trace, debug, info, warn, error or fatal\n' +
      'bad-config.yaml:2:15: unknown key listeners[0].prot; did you mean "port"?\n',
    err: '',
  }
  assert.deepEqual(await run(configCommand, 'check', bad), expected)
  assert.deepEqual(await run(configCommand, 'check', '--config', bad), expected)
  const json = await run(configCommand, 'check', '-o', 'json', bad)
  assert.equal(json.code, 2)
  assert.deepEqual(JSON.parse(json.out), [
    {
      file: 'bad-config.yaml',
      line: 1,
      column: 15,
      message: 'log.level: found "loud", expected trace, debug, info, warn, error or fatal',
    },
    {
      file: 'bad-config.yaml',
      line: 2,
      column: 15,
      message: 'unknown key listeners[0].prot; did you mean "port"?',
    },
  ])
  const none = await run(configCommand, 'check', join(root, 'none.yaml'))
  assert.deepEqual(
    [none.code, none.out],
    [2, 'none.yaml:1:1: cannot read: ENOENT: no such file or directory\n'],
  )
})

test('configCommand schema prints JSON Schema', async () => {
  const { code, out } = await run(configCommand, 'schema')
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(out), configJsonSchema())
})

test('configCommand refuses other verbs', async () => {
  for (const args of [[], ['show'], ['schema', 'x'], ['check', 'a', 'b']]) {
    const { code, err } = await run(configCommand, ...args)
    assert.equal(code, 2, args.join(' '))
    assert.match(err, /^namegate: config needs check \[FILE\] or schema\nUsage: /)
  }
})

test('every command has help with usage, exit codes and examples', async () => {
  for (const command of [matchCommand, policyCheckCommand, configCommand]) {
    for (const flag of ['--help', '-h']) {
      const { code, out, err } = await run(command, flag)
      assert.deepEqual([code, err], [0, ''])
      for (const part of [/^Usage: namegate /, /\nExit codes: 0 /, /\nExamples:\n {2}namegate /]) {
        assert.match(out, part)
      }
    }
  }
})
