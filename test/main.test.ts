// The program as a process: exit codes, output to stdout and stderr, a reader that closes its end, and a daemon that commands ask.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { LabProcess, run, type Output } from './support/labs/lab-process.ts'
import { FakeUpstream } from './support/peers/upstream.ts'

const PROGRAM = resolve('bin/namegate')
const folder = mkdtempSync(join(tmpdir(), 'namegate-main-'))
const config = join(folder, 'namegate.yaml')
let upstream: FakeUpstream
let daemon: LabProcess

before(async () => {
  upstream = await FakeUpstream.start()
  writeFileSync(
    join(folder, 'policy.yaml'),
    `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: web }
spec:
  endpointSelector: {}
  egress:
    - toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchPattern: '*.ok.example' }] } }]
    - toFQDNs: [{ matchPattern: '*.ok.example' }]
`,
  )
  writeFileSync(
    join(folder, 'endpoints.yaml'),
    'endpoints: [{ name: me, addresses: [127.0.0.1], labels: { app: me } }]\n',
  )
  writeFileSync(
    config,
    `listeners: [{ address: 127.0.0.1, port: 0, mode: explicit }]
upstreams: { servers: ["127.0.0.1:${upstream.port}"] }
policies: { paths: [policy.yaml] }
endpoints: { files: [endpoints.yaml] }
metrics: { address: 127.0.0.1, port: 0 }
`,
  )
  daemon = new LabProcess(PROGRAM, ['run', '--config', config], { cwd: folder })
  await daemon.untilOutput(/namegate serves/, 20_000)
})

after(async () => {
  await daemon.stop()
  await upstream.stop()
  rmSync(folder, { recursive: true })
})

async function namegate(...args: readonly string[]): Promise<Output> {
  return await run(PROGRAM, args, { cwd: folder, limitMs: 30_000 })
}

test('namegate ends with the exit codes of the contract, with errors only on stderr', async () => {
  const wrong = join(folder, 'wrong.yaml')
  writeFileSync(wrong, 'admn: {}\n')
  const rows: readonly (readonly [
    args: readonly string[],
    code: number,
    err: RegExp,
    why: string,
  ])[] = [
    [['help'], 0, /^$/, 'the list'],
    [[], 2, /^namegate: no command/, 'no command'],
    [['stats'], 2, /did you mean status\?/, 'unknown command'],
    [['state'], 2, /^namegate: state needs show or check/, 'a word is missing'],
    [['status', '--socket', 'no.sock'], 3, /^namegate: No daemon at no\.sock: /, 'no daemon'],
    [['run', '--config', wrong], 2, /wrong\.yaml:1:1: .*admn/, 'invalid config'],
    [['run', '--config', 'none.yaml'], 2, /none\.yaml:1:1: /, 'missing config'],
    [['match', 'a.b', 'b.c'], 1, /^$/, 'a negative result'],
  ]
  for (const [args, code, err, why] of rows) {
    const output = await namegate(...args)
    assert.deepEqual(
      [output.code, code === 0 || output.stdout === '' || code === 1],
      [code, true],
      why,
    )
    assert.match(output.stderr, err, why)
  }
})

test('namegate asks its daemon and shows the decision', async () => {
  const listed = await namegate('status', '--ready', '-o', 'json', '--config', config)
  assert.equal(listed.code, 0, listed.stdout + listed.stderr)
  const asked = await namegate('ask', 'www.ok.example', '--config', config)
  assert.deepEqual([asked.code, asked.stderr], [0, ''], asked.stdout)
  assert.match(asked.stdout, /192\.0\.2\.1\n/)
  assert.match(
    asked.stdout,
    /decision: .* allow me +A www\.ok\.example NOERROR, 1 address learned\n$/,
  )
  const refused = await namegate('ask', 'other.example', '--tcp', '--config', config)
  assert.equal(refused.code, 1)
  assert.match(refused.stdout, /REFUSED[^]*EDE: 15 \(Blocked\)[^]*decision: .* deny +me/)
  const { code, stdout } = await namegate('get', 'ipcache', '-o', 'json', '--config', config)
  assert.equal(code, 0)
  assert.match(stdout, /"prefix":"192\.0\.2\.1\/32".*"fqdn:\*\.ok\.example"/)
  assert.equal((await namegate('datapath', 'verify', '--config', config)).code, 0)
})

test('namegate ends in order when the reader of stdout closes its end', async () => {
  const child = spawn(PROGRAM, ['flows', '--follow', '--config', config], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let err = ''
  child.stderr.on('data', (text: Buffer) => (err += text.toString()))
  await once(child.stdout, 'data')
  child.stdout.destroy()
  await namegate('ask', 'www.ok.example', '--config', config)
  if (child.exitCode === null) await once(child, 'exit')
  assert.deepEqual([child.exitCode, err], [0, ''])
})

for (const args of [
  ['version'],
  ['get', 'ipcache', '-o', 'json', '--config', config],
  ['config', 'schema'],
]) {
  test(`namegate reports that it cannot write its output: ${args.join(' ').slice(0, 14)}`, async () => {
    const script = `exec "$0" "$@" >/dev/full`
    const { code, stderr } = await run('sh', ['-c', script, PROGRAM, ...args], { cwd: folder })
    assert.match(stderr, /^namegate: Cannot write to standard output: ENOSPC/)
    assert.equal(code, 3)
  })
}

test('a second daemon reports the first one, and leaves it as it is', async () => {
  const second = await namegate('run', '--config', config)
  assert.equal(second.code, 3, second.stdout + second.stderr)
  assert.equal((await namegate('status', '--ready', '--config', config)).code, 0)
})
