// `namegate doctor` as a program: with a daemon, without one, with a faulty configuration, and as an ordinary user.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { parseConfig } from '../../../src/config/load.ts'
import { Machine } from '../../../src/cli/doctor/machine.ts'
import { checkUpstreams } from '../../../src/cli/doctor/names.ts'
import { runTool } from '../../../src/intercept/tools.ts'
import { endpointsText, policyText } from '../../support/nodes/daemon-files.ts'
import { DaemonFolder, NEEDS_ROOT, NOBODY, PROGRAM } from '../../support/nodes/daemon-process.ts'
import { answering, FakeUpstream, silent } from '../../support/peers/upstream.ts'

let upstream: FakeUpstream
let folder: DaemonFolder
before(async () => {
  upstream = await FakeUpstream.start()
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['*.example']),
      'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
    },
    config: { upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }` },
  })
})
after(async () => {
  folder.remove()
  await upstream.stop()
})

interface Found {
  readonly check: string
  readonly result: string
  readonly found: string
  readonly remedy?: string
}

function findingsIn(json: string): readonly Found[] {
  const parsed: unknown = JSON.parse(json)
  assert.ok(Array.isArray(parsed))
  return parsed.map((each: Found) => each)
}

test('namegate doctor prints each finding as JSON, and sends one query to a server', async () => {
  upstream.behaviour = answering
  const seen = upstream.queries.length
  const { code, stdout, stderr } = await folder.namegate('doctor', '-o', 'json')
  const findings = findingsIn(stdout)
  assert.equal(code, findings.some(({ result }) => result === 'problem') ? 1 : 0, stderr)
  const of = (check: string) => findings.find((each) => each.check === check)
  assert.deepEqual(of('configuration')?.result, 'ok')
  assert.deepEqual([of('daemon')?.result, of('upstreams')?.result], ['warning', 'ok'], stdout)
  assert.equal(upstream.queries.length, seen + 1)
  assert.ok(!readdirSync(folder.path).includes('state'), 'the state folder is not made')
})

test('checkUpstreams says which server is silent', async () => {
  upstream.behaviour = silent
  const config = parseConfig(
    `upstreams: { servers: ["127.0.0.1:${upstream.port}"] }`,
    'namegate.yaml',
    () => false,
  )
  const machine = new Machine(runTool)
  const [finding] = await checkUpstreams({ machine, config, status: undefined })
  upstream.behaviour = answering
  assert.equal(finding?.result, 'problem')
  assert.equal(finding.found, `127.0.0.1:${upstream.port}: no answer in 3 s`)
  assert.match(finding.remedy ?? '', /^dig @127\.0\.0\.1 \. NS/)
})

test('namegate doctor asks a running daemon, and no server', async () => {
  const daemon = await folder.serve()
  try {
    const seen = upstream.queries.filter(({ name }) => name === '').length
    const { stdout, stderr } = await folder.namegate('doctor')
    assert.match(stdout, /^(?:ok|PROBLEM) +daemon +version \d+\.\d+\.\d+, pid \d+, /m, stderr)
    assert.match(stdout, /^ok +ports +the daemon serves 127\.0\.0\.1:\d+$/m)
    assert.equal(upstream.queries.filter(({ name }) => name === '').length, seen)
  } finally {
    await daemon.process.stop()
  }
})

test('namegate doctor ends with 1 if the configuration has a fault, and checks the rest', async () => {
  folder.write('bad.yaml', 'datapth: {}\nlog: { levl: info }\n')
  const config = folder.in('bad.yaml')
  const { code, stdout } = await folder.run(PROGRAM, 'doctor', '--config', config)
  assert.equal(code, 1)
  assert.match(stdout, /^PROBLEM +configuration +.*bad\.yaml:1:1: .*\(and 1 more\)/m)
  assert.match(stdout, new RegExp(`remedy: \\S*namegate config check ${config}\n`))
  assert.match(stdout, /^\w+ +kernel /m)
})

test(
  'namegate doctor works without root, and says what it cannot check',
  { skip: NEEDS_ROOT },
  async () => {
    const args = [...NOBODY, PROGRAM, 'doctor', '--config', folder.in('namegate.yaml')]
    const { code, stdout, stderr } = await folder.run('setpriv', ...args)
    assert.ok(code === 0 || code === 1, stderr)
    assert.match(stdout, /^unchecked +state folder +.*this user cannot write/m)
    assert.match(stdout, /\d+ checks without a result$/m)
  },
)

test('checkUpstreams says of servers that the daemon asked that they answer', async () => {
  const machine = new Machine(runTool)
  const config = parseConfig('', 'namegate.yaml', () => false)
  for (const [addresses, found] of [
    [['192.0.2.53:53'], '192.0.2.53:53 answers'],
    [['192.0.2.53:53', '192.0.2.54:53'], '192.0.2.53:53, 192.0.2.54:53 answer'],
  ] as const) {
    const upstreams = addresses.map((address) => ({ address, answered: true }))
    const [finding] = await checkUpstreams({ machine, config, status: { upstreams } })
    assert.deepEqual([finding?.result, finding?.found], ['ok', found])
  }
})
