// A state folder that refuses writes does not stop the daemon (docs/state.md). The daemon starts with the content of the folder, and
// reports that nothing is kept. When a full folder has room again, the daemon writes.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { http } from '../support/nodes/admin.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import {
  DaemonFolder,
  NEEDS_ROOT,
  NOBODY,
  PROGRAM,
  RunningDaemon,
} from '../support/nodes/daemon-process.ts'
import { LabProcess } from '../support/labs/lab-process.ts'

const REFUSES = /the state folder cannot be written/

const folders: DaemonFolder[] = []
const daemons: RunningDaemon[] = []

after(async () => {
  for (const daemon of daemons) await daemon.process.stop()
  for (const folder of folders) folder.remove()
})

function mkFolder(): DaemonFolder {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    'state/settings.json':
      '{ "version": 1, "audit": { "endpoints": {"me":true}, "selectors": [] } }\n',
    'state/resources/00.json': '{ "version": 9 }\n',
  }
  const folder = new DaemonFolder({ files })
  folders.push(folder)
  return folder
}

/** Runs the daemon in its own mount namespace, after `mounting`. */
async function serveOver(folder: DaemonFolder, mounting: string): Promise<RunningDaemon> {
  const command = `${mounting} && exec ${PROGRAM} run --config namegate.yaml`
  const child = new LabProcess('unshare', ['-m', 'sh', '-c', command], { cwd: folder.path })
  const daemon = new RunningDaemon(child, folder.in('admin.sock'))
  daemons.push(daemon)
  await child.untilOutput(/namegate serves/, 60_000)
  return daemon
}

async function warningsOf(daemon: RunningDaemon): Promise<string> {
  return JSON.stringify((await daemon.status())['warnings'])
}

async function setResource(folder: DaemonFolder): Promise<number | undefined> {
  const body = JSON.stringify({ addresses: ['203.0.113.1'], labels: { app: 'db' } })
  const to = { socketPath: folder.in('admin.sock') }
  return (await http(to, '/v1/resources/db', { method: 'PUT', body })).status
}

test(
  'the daemon starts over a read-only state folder, uses its content and reports that nothing is kept',
  {
    skip: NEEDS_ROOT,
  },
  async () => {
    const folder = mkFolder()
    const bound = 'mount --bind state state && mount -o remount,ro,bind state'
    const daemon = await serveOver(folder, bound)
    assert.match(daemon.process.stderr, /state folder takes no lock/)
    assert.match(await warningsOf(daemon), REFUSES)
    const { text: before } = await daemon.get('/v1/endpoints')
    assert.match(before, /"audit":true/, 'earlier settings are in force')
    assert.equal(await setResource(folder), 500, 'the response reports a resource that is not kept')
    const said = await folder.namegate('audit', 'off', '--endpoint', 'me')
    assert.equal(said.code, 3, 'the same for settings')
    assert.match(said.stderr, /audit: in force, but not kept over restarts yet: .*EROFS/)
    const { text: later } = await daemon.get('/v1/endpoints')
    assert.match(later, /"audit":false/)
    await daemon.process.until(() => {
      return /"?cause"?: ?"read-only"/.test(daemon.process.stderr) ? true : undefined
    }, 'counted by cause')
    assert.equal(existsSync(folder.in('state/lock')), false)
  },
)

for (const [what, mode] of [
  ['cannot look into', 0o700],
  ['cannot write in', 0o755],
] as const) {
  test(
    `the daemon starts over a state folder that it ${what}, and writes as soon as it can`,
    { skip: NEEDS_ROOT },
    async () => {
      const folder = mkFolder()
      chmodSync(folder.in('state'), mode)
      chmodSync(folder.path, 0o777)
      const command = [...NOBODY, PROGRAM, 'run', '--config', 'namegate.yaml']
      const child = new LabProcess('setpriv', command, { cwd: folder.path })
      const daemon = new RunningDaemon(child, folder.in('admin.sock'))
      daemons.push(daemon)
      await child.untilOutput(/namegate serves/, 60_000)
      assert.match(child.stderr, /state folder takes no lock: .*EACCES|EACCES.*takes no lock/)
      assert.match(await warningsOf(daemon), REFUSES)
      assert.equal(
        await setResource(folder),
        500,
        'the response reports a resource that is not kept',
      )
      const mended = await folder.run('chown', '-R', '65534:65534', folder.in('state'))
      assert.equal(mended.code, 0, mended.stderr)
      await until('no warning', async () => !REFUSES.test(await warningsOf(daemon)), 60_000, 100)
      assert.equal(existsSync(folder.in('state/lock')), true)
    },
  )
}

test(
  'the daemon writes what it could not write when a full state folder has room again',
  {
    skip: NEEDS_ROOT,
  },
  async () => {
    const folder = mkFolder()
    const full = 'mount -t tmpfs -o size=64k none state && head -c 1M /dev/zero >state/filler; true'
    const daemon = await serveOver(folder, full)
    const inside = join(`/proc/${daemon.process.pid}/root`, folder.in('state'))
    assert.equal(await setResource(folder), 500)
    assert.match(await warningsOf(daemon), REFUSES)
    rmSync(join(inside, 'filler'))
    await until('no warning', async () => !REFUSES.test(await warningsOf(daemon)), 30_000, 100)
    const kept = readdirSync(join(inside, 'resources'))
    assert.equal(kept.filter((name) => name.endsWith('.json')).length, 1, 'the resource')
  },
)

test('status names kept files that the daemon skipped until they are written again', async () => {
  const folder = mkFolder()
  folder.write('state/settings.json', 'no settings')
  const daemon = await folder.serve()
  daemons.push(daemon)
  assert.match(await warningsOf(daemon), /settings\.json.*resources\/00\.json/)
  await daemon.post('/v1/audit', { scope: 'endpoint', name: 'me', on: true })
  assert.doesNotMatch(await warningsOf(daemon), /settings\.json/)
})
