import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { callerNow, hiddenFrom, type Caller } from '../../src/sandbox/hidden.ts'
import { LabProcess } from '../support/labs/lab-process.ts'

function mkCaller(given: Partial<Caller>): Caller {
  return { env: {}, uid: 1000, sockets: [], isSocket: () => false, ...given }
}

test('hiddenFrom covers every socket that is bound, and those that are known by name', () => {
  const { files, folders } = hiddenFrom(
    mkCaller({ sockets: ['/run/agent.sock'], env: { HOME: '/srv/u' } }),
  )
  for (const path of ['/run/agent.sock', '/run/docker.sock', '/srv/u/.gnupg/S.gpg-agent']) {
    assert.ok(files.includes(path), path)
  }
  assert.ok(folders.includes('/run/user/1000'))
})

test('hiddenFrom covers the paths that variables name, and removes the variables', () => {
  const rows: readonly (readonly [name: string, value: string, path: string])[] = [
    ['SSH_AUTH_SOCK', '/srv/ssh-x/agent.1', '/srv/ssh-x/agent.1'],
    ['DOCKER_HOST', 'unix:///srv/d.sock', '/srv/d.sock'],
    ['DBUS_SESSION_BUS_ADDRESS', 'unix:path=/srv/bus,guid=1', '/srv/bus'],
    ['MY_OWN_AGENT', '/srv/mine.sock', '/srv/mine.sock'],
  ]
  for (const [name, value, path] of rows) {
    const env = { [name]: value, PATH: '/usr/bin:/bin', EMPTY: undefined }
    const hidden = hiddenFrom(mkCaller({ env, isSocket: (each) => each === path }))
    assert.ok(hidden.files.includes(path), name)
    assert.deepEqual(hidden.env, { PATH: '/usr/bin:/bin' })
  }
})

test('hiddenFrom removes known variables with any value, and keeps others', () => {
  const env = { XDG_RUNTIME_DIR: '/somewhere', DISPLAY: ':0', LANG: 'C', EDITOR: '/usr/bin/vi' }
  const hidden = hiddenFrom(mkCaller({ env }))
  assert.deepEqual(hidden.env, { LANG: 'C', EDITOR: '/usr/bin/vi' })
  assert.ok(hidden.folders.includes('/somewhere'))
})

test('hiddenFrom never covers the root folder', () => {
  assert.ok(!hiddenFrom(mkCaller({ env: { XDG_RUNTIME_DIR: '/' } })).folders.includes('/'))
})

/** Binds sockets by names relative to its working folder, and renames one of them. */
const AGENT = `
const { createServer } = require('node:net')
createServer().listen('relative.sock', () =>
  createServer().listen('new.tmp', () => {
    require('node:fs').renameSync('new.tmp', 'new.sock')
    console.log('ready')
  }))
`

test('hiddenFrom covers sockets of other processes that were bound by a relative name, or renamed', async () => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'namegate-hidden-'))
  const agent = new LabProcess(process.execPath, ['-e', AGENT], { cwd: folder })
  try {
    await agent.untilOutput(/ready/)
    const { files } = hiddenFrom(callerNow())
    for (const name of ['relative.sock', 'new.sock'])
      assert.ok(files.includes(join(folder, name)), name)
  } finally {
    await agent.stop()
    rmSync(folder, { recursive: true })
  }
})
