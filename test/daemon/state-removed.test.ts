// A state folder or one of its files is removed while the daemon runs. The daemon notices it within seconds, logs it, and writes it again
// (docs/state.md). If another daemon has the folder by then, it writes after that daemon has ended.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { fieldsOf, listOf, textOf } from '../../src/cli/fields.ts'
import { http } from '../support/nodes/admin.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM, RunningDaemon } from '../support/nodes/daemon-process.ts'
import { LabProcess } from '../support/labs/lab-process.ts'

const folders: DaemonFolder[] = []
const daemons: RunningDaemon[] = []

after(async () => {
  for (const daemon of daemons) await daemon.process.stop()
  for (const folder of folders) folder.remove()
})

async function serve(): Promise<[DaemonFolder, RunningDaemon]> {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
  }
  const folder = new DaemonFolder({ files })
  folders.push(folder)
  const daemon = await folder.serve()
  daemons.push(daemon)
  await until('an image', () => newest(folder, 'checkpoint') > 0)
  return [folder, daemon]
}

/** Another daemon with the same state folder. */
async function serveBeside(folder: DaemonFolder): Promise<RunningDaemon> {
  const text = readFileSync(folder.in('namegate.yaml'), 'utf8')
  const other = text.replace('admin.sock', 'other.sock')
  assert.notEqual(other, text)
  folder.write('other.yaml', other)
  const child = new LabProcess(PROGRAM, ['run', '--config', 'other.yaml'], { cwd: folder.path })
  const daemon = new RunningDaemon(child, folder.in('other.sock'))
  daemons.push(daemon)
  await child.untilOutput(/namegate serves/, 60_000)
  return daemon
}

/** The generation of the newest file of a kind, or 0. */
function newest(folder: DaemonFolder, kind: 'checkpoint' | 'journal'): number {
  const pattern = new RegExp(`^${kind}\\.(\\d+)$`)
  return Math.max(0, ...namesIn(folder).map((name) => Number(pattern.exec(name)?.[1] ?? 0)))
}

function namesIn(folder: DaemonFolder): readonly string[] {
  try {
    return readdirSync(folder.in('state'))
  } catch {
    return []
  }
}

async function crash({ process }: RunningDaemon): Promise<void> {
  process.kill('SIGKILL')
  await until('end', () => !process.running)
}

async function warningsOf(daemon: RunningDaemon): Promise<string> {
  return JSON.stringify((await daemon.status())['warnings'])
}

/** Each identity with its labels, sorted. */
async function identities(daemon: RunningDaemon): Promise<readonly string[]> {
  const { text } = await daemon.get('/v1/identities')
  return listOf(JSON.parse(text))
    .map((each) => {
      const { id, labels } = fieldsOf(each)
      return `${textOf(id)} ${listOf(labels).join(' ')}`
    })
    .sort()
}

/** Audits the endpoint, and sets a resource. */
async function set(folder: DaemonFolder, daemon: RunningDaemon): Promise<void> {
  await daemon.post('/v1/audit', { scope: 'endpoint', name: 'me', on: true })
  const body = JSON.stringify({ addresses: ['203.0.113.1'], labels: { app: 'db' } })
  const to = { socketPath: folder.in('admin.sock') }
  await http(to, '/v1/resources/db', { method: 'PUT', body })
}

test('the daemon writes a removed state folder again, with everything that is kept in it', async () => {
  const [folder, daemon] = await serve()
  await set(folder, daemon)
  const [before, generation] = [await identities(daemon), newest(folder, 'checkpoint')]
  rmSync(folder.in('state'), { recursive: true })
  await until('new image', () => newest(folder, 'checkpoint') > generation)
  await until('new settings', () => namesIn(folder).includes('settings.json'))
  await until('new resources', () => namesIn(folder).includes('resources'))
  assert.match(daemon.process.stderr, /"?cause"?: ?"lost"/, 'it is logged')
  assert.ok(namesIn(folder).includes('lock'))
  await until('end of the warning', async () => {
    return !/state folder/.test(await warningsOf(daemon))
  })
  // Only what was written before the crash is there.
  await crash(daemon)
  const next = await folder.serve()
  daemons.push(next)
  assert.deepEqual(await identities(next), before, 'the same numbers')
  assert.match((await next.get('/v1/endpoints')).text, /"audit":true/)
  assert.match((await next.get('/v1/resources')).text, /"db"/)
})

test('the daemon writes settings and resources again when only their files were removed', async () => {
  const [folder, daemon] = await serve()
  await set(folder, daemon)
  const [shard] = readdirSync(folder.in('state/resources'))
  const files = ['state/settings.json', `state/resources/${shard}`].map((name) => folder.in(name))
  const texts = files.map((file) => readFileSync(file, 'utf8'))
  for (const file of files) rmSync(file)
  await until('new files', () => files.every((file) => existsSync(file)))
  assert.deepEqual(
    files.map((file) => readFileSync(file, 'utf8')),
    texts,
  )
  await daemon.process.untilOutput(/the file of settings is gone: written anew/)
  await daemon.process.untilOutput(/a file of resources is gone: written anew/)
  assert.equal(fieldsOf((await daemon.status())['kept'])['faults'], 2)
})

test('the daemon continues, and starts, while a file is in the place of the folder of resources', async () => {
  const [folder, daemon] = await serve()
  await set(folder, daemon)
  const place = folder.in('state/resources')
  // Otherwise the daemon could make the folder again before the test makes the file.
  daemon.process.kill('SIGSTOP')
  rmSync(place, { recursive: true })
  writeFileSync(place, 'in the way')
  daemon.process.kill('SIGCONT')
  await daemon.process.untilOutput(/resources are in force until a restart/)
  await daemon.process.untilOutput(/a file of resources is gone/)
  assert.match(await warningsOf(daemon), /state folder/)
  await crash(daemon)
  const next = await folder.serve()
  daemons.push(next)
  assert.match(await warningsOf(next), /resources: cannot read: ENOTDIR/)
  rmSync(place)
  await until('end of the warning', async () => !/ENOTDIR/.test(await warningsOf(next)))
  await set(folder, next)
  assert.equal(readdirSync(place).length, 1)
})

for (const kind of ['checkpoint', 'journal'] as const) {
  for (const [what, change] of [
    ['removed', (path: string) => rmSync(path)],
    ['replaced', (path: string) => writeFileSync(path, 'something else')],
  ] as const) {
    test(`the daemon writes everything again when a ${kind} is ${what}`, async () => {
      const [folder, daemon] = await serve()
      const generation = newest(folder, kind)
      assert.ok(generation > 0)
      change(folder.in(`state/${kind}.${generation}`))
      await until('new image', () => newest(folder, 'checkpoint') > generation)
      assert.match(daemon.process.stderr, new RegExp(`${kind}\\.${generation}`), 'it is named')
    })
  }
}

test('the daemon writes nothing in a folder that another daemon has locked, reports it, and writes when that daemon ends', async () => {
  const [folder, daemon] = await serve()
  // Otherwise the daemon would lock the folder again before the other one starts.
  daemon.process.kill('SIGSTOP')
  rmSync(folder.in('state'), { recursive: true })
  const other = await serveBeside(folder)
  daemon.process.kill('SIGCONT')
  await until('a warning about the other daemon', async () => {
    const { warnings } = await daemon.status()
    return JSON.stringify(warnings).includes(`pid ${other.process.pid}:`)
  })
  const successor = await folder.namegate('run', '--take-over')
  assert.equal(successor.code, 3)
  assert.match(successor.stderr, /another daemon has the state folder/)
  await crash(other)
  await until('its own image', async () => {
    const { warnings, kept } = await daemon.status()
    const isOver = !JSON.stringify(warnings).includes('state folder')
    return isOver && newest(folder, 'checkpoint') === fieldsOf(kept)['generation']
  })
  assert.match(
    readFileSync(folder.in('state/lock'), 'utf8'),
    new RegExp(`^${daemon.process.pid}$`, 'm'),
  )
})
