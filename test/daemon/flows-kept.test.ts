// Kept flows: they outlive the process, go to the configured place, and a full disk does not delay DNS.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { isFields, textOf, type Fields } from '../../src/cli/fields.ts'
import { http } from '../support/nodes/admin.ts'
import {
  DaemonFolder,
  NEEDS_ROOT,
  PROGRAM,
  RunningDaemon,
} from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { LabProcess } from '../support/labs/lab-process.ts'
import { answering, FakeUpstream } from '../support/peers/upstream.ts'

const files = {
  'policy.yaml': policyText('web', ['*.example']),
  'endpoints.yaml': endpointsText({ shop: '127.0.0.1' }),
}

function rowsOf(text: string): readonly Fields[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line): unknown => JSON.parse(line)).filter(isFields)
}

/** `name kind times`, in the order of the first flow. A flow can be written in two parts. */
function told(rows: readonly Fields[]): readonly string[] {
  const times = new Map<string, number>()
  for (const { name, kind, count } of rows) {
    const what = `${textOf(name)} ${textOf(kind)}`
    times.set(what, (times.get(what) ?? 0) + (typeof count === 'number' ? count : 1))
  }
  return [...times].map(([what, count]) => `${what} ${count}`)
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 15_000; !(await isSo()); await sleep(50)) {
    assert.ok(performance.now() < deadline, `expected ${what}`)
  }
}

describe('flows kept', () => {
  let upstream: FakeUpstream
  const folders: DaemonFolder[] = []
  const daemons: RunningDaemon[] = []
  before(async () => {
    upstream = await FakeUpstream.start(answering)
  })
  after(async () => {
    for (const daemon of daemons) await daemon.process.stop()
    for (const folder of folders) folder.remove()
    await upstream.stop()
  })

  function mkFolder(config: Readonly<Record<string, string>> = {}): DaemonFolder {
    const upstreams = `{ servers: ["127.0.0.1:${upstream.port}"] }`
    const folder = new DaemonFolder({ files, config: { upstreams, ...config } })
    folders.push(folder)
    return folder
  }

  async function serve(folder: DaemonFolder): Promise<RunningDaemon> {
    const daemon = await folder.serve()
    daemons.push(daemon)
    return daemon
  }

  async function ask(
    daemon: RunningDaemon,
    ...names: readonly string[]
  ): Promise<readonly string[]> {
    const client = await daemon.client()
    const rcodes: string[] = []
    for (const name of names) rcodes.push((await client.ask(name)).rcode)
    client.close()
    return rcodes
  }

  test('outlive the daemon, are listed before those of the next one, and are counted in metrics', async () => {
    const folder = mkFolder()
    const first = await serve(folder)
    assert.deepEqual(await ask(first, 'a.example', 'A.example', 'evil.test'), [
      'NOERROR',
      'NOERROR',
      'REFUSED',
    ])
    await first.process.stop()
    const port = await freePort()
    folder.configure({
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
      metrics: `{ address: 127.0.0.1, port: ${port} }`,
    })
    const second = await serve(folder)
    await ask(second, 'b.example')
    const { stdout: all } = await folder.namegate('flows', '-o', 'json')
    assert.deepEqual(told(rowsOf(all)), [
      'a.example answered 2',
      'evil.test denied 1',
      'b.example answered 1',
    ])
    const { stdout: kept } = await folder.namegate('flows', '--kept', '--since', '1h', '-o', 'json')
    assert.deepEqual(told(rowsOf(kept)), [
      'a.example answered 2',
      'evil.test denied 1',
      'b.example answered 1',
    ])
    const { stdout: last } = await folder.namegate('flows', '--kept', '--last', '1', '-o', 'json')
    assert.deepEqual(told(rowsOf(last)), ['b.example answered 1'])
    const { stdout: denied } = await folder.namegate('flows', '--kept', '--verdict', 'deny')
    assert.match(denied, /^\S+Z deny +shop +A evil\.test denied\b.*\n$/)
    const { stdout: none } = await folder.namegate('flows', '--kept', '--since', '0ms')
    assert.equal(none, '')
    assert.equal((await folder.namegate('flows', '--kept', '--verdict', 'x')).code, 2)
    assert.equal((await folder.namegate('flows', '--since', 'x')).code, 2)
    const { text } = await http({ port }, '/metrics')
    assert.match(text, /^namegate_flow_lines_total\{output="file"\} [1-9]\d*$/m)
    assert.match(text, /^namegate_limit_bound\{limit="flows\.max-size"\} 268435456$/m)
    assert.match(text, /^namegate_limit_use\{limit="flows\.max-size"\} [1-9]\d*$/m)
    assert.match(text, /^namegate_flows_lost_total 0$/m)
    const { stdout: suggested } = await folder.namegate(
      'policy',
      'suggest',
      '--policies',
      'policy.yaml',
    )
    assert.equal(suggested, '', 'its policy allows what was asked')
  })

  test('show the name of an endpoint that was removed meanwhile, as the ring does', async () => {
    const folder = mkFolder()
    const daemon = await serve(folder)
    await ask(daemon, 'a.example', 'evil.test')
    folder.write('endpoints.yaml', 'endpoints: []\n')
    await until('the removal', async () => {
      return (await daemon.get('/v1/endpoints')).text.trim() === '[]'
    })
    const flows = await folder.namegate('flows', '--endpoint', 'shop', '-o', 'json')
    const shown = rowsOf(flows.stdout).map(({ name, endpoint }) => [name, endpoint])
    const both = [
      ['a.example', 'shop'],
      ['evil.test', 'shop'],
    ]
    assert.deepEqual(shown, both)
    await until('the kept flows', async () => {
      const kept = await folder.namegate('flows', '--kept', '-o', 'json')
      return isDeepStrictEqual(
        rowsOf(kept.stdout).map(({ name, endpoint }) => [name, endpoint]),
        both,
      )
    })
  })

  test('go to standard output when the config says so, and then nothing is on disk', async () => {
    const folder = mkFolder({ flows: '{ output: [stdout] }' })
    const daemon = await serve(folder)
    await ask(daemon, 'a.example')
    await until('the flow on standard output', () => daemon.process.stdout.includes('"a.example"'))
    assert.deepEqual(told(rowsOf(daemon.process.stdout)), ['a.example answered 1'])
    const { code, stderr } = await folder.namegate('flows', '--kept')
    assert.equal(code, 3)
    assert.match(stderr, /flows are not kept on disk here/)
    assert.deepEqual(told(rowsOf((await folder.namegate('flows', '-o', 'json')).stdout)), [
      'a.example answered 1',
    ])
  })

  test('lose their reader: the daemon logs it once and continues', async () => {
    const folder = mkFolder({ flows: '{ output: [stdout] }' })
    const script = `exec '${PROGRAM}' run --config namegate.yaml > >(exec head -n 1)`
    const child = new LabProcess('bash', ['-c', script], { cwd: folder.path })
    const daemon = new RunningDaemon(child, folder.in('admin.sock'))
    daemons.push(daemon)
    await child.untilOutput(/namegate serves/, 60_000)
    let asked = 0
    await until('the log line', async () => {
      assert.deepEqual(await ask(daemon, `n${asked++}.example`), ['NOERROR'])
      return /the reader of flows has gone/.test(child.stderr)
    })
    assert.deepEqual(await ask(daemon, 'last.example'), ['NOERROR'])
    assert.equal(child.stderr.match(/the reader of flows has gone/g)?.length, 1)
  })

  test(
    'wait for room on a full disk, which the daemon logs once, while DNS continues',
    { skip: NEEDS_ROOT },
    async () => {
      const folder = mkFolder()
      const state = folder.in('state/flows')
      mkdirSync(state, { recursive: true })
      // A full file system in its own mount namespace.
      const script = `mount -t tmpfs -o size=64k tmpfs '${state}' && { head -c 1m /dev/zero > '${state}/filler'; exec '${PROGRAM}' run --config namegate.yaml; }`
      const child = new LabProcess(
        'unshare',
        ['--mount', '--propagation', 'private', '--', 'bash', '-c', script],
        { cwd: folder.path },
      )
      const daemon = new RunningDaemon(child, folder.in('admin.sock'))
      daemons.push(daemon)
      await child.untilOutput(/namegate serves/, 60_000)
      assert.deepEqual(await ask(daemon, 'a.example', 'b.example'), ['NOERROR', 'NOERROR'])
      await until('a log line about the disk', () => /flows cannot be kept/.test(child.stderr))
      assert.match(child.stderr, /ENOSPC/)
      assert.deepEqual(await ask(daemon, 'c.example'), ['NOERROR'])
      const inside = join('/proc', String(child.pid), 'root', state)
      assert.deepEqual(readdirSync(inside), ['filler'], 'no empty files')
      rmSync(join(inside, 'filler'))
      await until('the flows on disk', () => {
        const names = readdirSync(inside)
        return names.some((name) => readFileSync(join(inside, name), 'utf8').includes('c.example'))
      })
      const text = readdirSync(inside)
        .map((name) => readFileSync(join(inside, name), 'utf8'))
        .join('')
      assert.deepEqual(told(rowsOf(text)), [
        'a.example answered 1',
        'b.example answered 1',
        'c.example answered 1',
      ])
      assert.equal(child.stderr.match(/flows cannot be kept/g)?.length, 1)
    },
  )
})
