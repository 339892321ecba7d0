import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { InvalidInputError, UsageError } from '../../../src/core/errors.ts'
import { runTool } from '../../../src/intercept/tools.ts'
import { namegate, objectIn, runCommand } from '../../support/nodes/command.ts'

const interceptCommand = namegate('intercept')

const folder = mkdtempSync(join(tmpdir(), 'namegate-intercept-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const hasIp = (await runTool('ip', ['-V'])).code === 0
const skip = hasIp ? false : 'iproute2 is not installed'

function mkConfig(listeners: string): string {
  const file = join(folder, 'namegate.yaml')
  writeFileSync(
    file,
    `listeners: [${listeners}]
upstreams: { servers: ['192.0.2.53:53'] }
policies: { paths: [] }
endpoints: { files: ['${join(folder, 'endpoints.yaml')}'] }
`,
  )
  writeFileSync(
    join(folder, 'endpoints.yaml'),
    `endpoints:
  - { name: a, addresses: [10.0.0.1], interface: nosuch1 }
  - { name: b, addresses: [10.0.0.2], interface: inside0, hook: egress }
  - { name: c, addresses: [10.0.0.3] }
`,
  )
  return file
}

const TPROXY = '{ port: 10053, mode: tproxy }, { port: 5300, mode: redirect }'

test('interceptCommand says how it is used', async () => {
  const rows: readonly (readonly [args: readonly string[], error: RegExp])[] = [
    [[], /intercept needs up, down or show/],
    [['sideways'], /intercept needs up, down or show/],
    [['up', 'down'], /intercept needs up, down or show/],
    [['up', '--iptables'], /--iptables is only for show/],
    [['show', '--user'], /--user/],
  ]
  for (const [args, error] of rows) {
    const { code, err, out } = await runCommand(interceptCommand, ...args)
    assert.deepEqual([code, out], [2, ''], args.join(' '))
    assert.match(err, error)
    assert.match(err, /^Usage: namegate intercept/m)
  }
  const { code, out } = await runCommand(interceptCommand, '--help')
  assert.equal(code, 0)
  assert.match(out, /^Examples:/m)
})

test('interceptCommand names the config when there is nothing to intercept', async () => {
  const config = mkConfig('{ address: 127.0.0.1, port: 5300 }')
  for (const verb of ['up', 'show']) {
    await assert.rejects(
      runCommand(interceptCommand, verb, '--config', config),
      (error) =>
        error instanceof InvalidInputError &&
        /namegate\.yaml:1:\d+: listeners: found none of mode tproxy or redirect/.test(
          error.message,
        ),
    )
  }
  await assert.rejects(
    runCommand(interceptCommand, 'show', '--user', 'me', '--config', mkConfig(TPROXY)),
    (error) => error instanceof UsageError && /expected the number of a user/.test(error.message),
  )
})

test(
  'interceptCommand shows rules for the interfaces of endpoints, and for another user',
  { skip },
  async () => {
    const config = ['--user', '1234', '--config', mkConfig(TPROXY)]
    const { code, out } = await runCommand(interceptCommand, 'show', ...config)
    assert.equal(code, 0)
    assert.match(
      out,
      /^# tproxy to port 10053 from the interfaces of endpoints, redirect to port 5300: /,
    )
    assert.match(out, /elements = \{ "nosuch1" \}/)
    assert.match(out, /meta skuid 1234 ip daddr @servers4/)
    assert.doesNotMatch(out, /inside0/)
    const rules = await runCommand(interceptCommand, 'show', '--iptables', ...config)
    assert.match(rules.out, /^-A NAMEGATE_TAKE -i nosuch1 -j DROP$/m)
    assert.match(
      rules.out,
      /^-4 -A NAMEGATE_REDIRECT -d 192\.0\.2\.53\/32 .*--uid-owner 1234 -j RETURN$/m,
    )
  },
)

test('interceptCommand shows one JSON object for each listener', { skip }, async () => {
  const { out } = await runCommand(
    interceptCommand,
    'show',
    '-o',
    'json',
    '--config',
    mkConfig(TPROXY),
  )
  const [tproxy, redirect] = JSON.parse(out) as unknown[]
  const { mode, port, interfaces, ofEndpoints } = objectIn(JSON.stringify(tproxy))
  assert.deepEqual([mode, port, interfaces, ofEndpoints], ['tproxy', 10053, [], true])
  assert.equal(objectIn(JSON.stringify(redirect))['uid'], process.geteuid?.())
})
