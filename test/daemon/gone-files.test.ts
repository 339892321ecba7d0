// Files of endpoints and resources that go away or have a folder in their place under a running daemon.

import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { test } from 'node:test'
import { faultsOf } from '../../src/admin/views/status.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { objectIn } from '../support/nodes/command.ts'

const RESOURCES = 'resources: [ { name: db, addresses: [192.0.2.1], labels: { app: db } } ]\n'
const options = {
  files: {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1', other: '127.0.0.2' }),
    'more.yaml': endpointsText({ more: '127.0.0.3' }),
    'resources.yaml': RESOURCES,
  },
  endpoints: ['endpoints.yaml', 'more.yaml'],
  resources: ['resources.yaml'],
}
/** Longer than it takes until a file that went counts as gone. */
const SETTLED_MS = 3000

function named(lab: DaemonLab, name: string): readonly string[] {
  return faultsOf(lab.admin)
    .filter(({ file }) => file === lab.path(name))
    .map(({ message }) => message)
}

/** What the log told of a file since `from`. */
function told(lab: DaemonLab, name: string, from: number) {
  const lines = lab.logged.slice(from).map((line) => objectIn(line))
  return lines
    .filter(({ path }) => path === lab.path(name))
    .map(({ msg, endpoints }) => [msg, endpoints])
}

for (const [kind, name] of [
  ['endpoints', 'endpoints.yaml'],
  ['resources', 'resources.yaml'],
] as const) {
  test(`A folder in the place of a file of ${kind} is a fault of that file, which stays in force`, async () => {
    await withLab(options, async (lab) => {
      const { registry } = lab.daemon.endpoints
      const before = [registry.size, lab.daemon.resources.count]
      renameSync(lab.path(name), lab.path('aside'))
      mkdirSync(lab.path(name))
      await lab.pass(SETTLED_MS)
      assert.deepEqual(named(lab, name), ['cannot read: it is no regular file'])
      assert.ok(
        lab.logged.some((line) => line.includes(`${lab.path(name)}:1:1: cannot read`)),
        'it is in the log',
      )
      assert.deepEqual([registry.size, lab.daemon.resources.count], before)
      assert.equal(await lab.verdict('a.example'), 'NOERROR')
      rmdirSync(lab.path(name))
      renameSync(lab.path('aside'), lab.path(name))
      await lab.pass(SETTLED_MS)
      assert.deepEqual(named(lab, name), [])
      assert.deepEqual([registry.size, lab.daemon.resources.count], before)
    })
  })
}

for (const [kind, name] of [
  ['endpoints', 'endpoints.yaml'],
  ['resources', 'resources.yaml'],
] as const) {
  test(`A file of ${kind} that is emptied is a fault of that file, which stays in force`, async () => {
    await withLab(options, async (lab) => {
      const { registry } = lab.daemon.endpoints
      const before = [registry.size, lab.daemon.resources.count]
      lab.empty(name)
      await lab.pass(SETTLED_MS)
      assert.deepEqual(named(lab, name), [
        `found no ${kind}, expected a list ('${kind}: []' for none)`,
      ])
      assert.deepEqual([registry.size, lab.daemon.resources.count], before)
      assert.equal(await lab.verdict('a.example'), 'NOERROR')
    })
  })
}

test('A folder in the place of a file of endpoints that goes, too, is a file that is gone', async () => {
  await withLab(options, async (lab) => {
    lab.remove('endpoints.yaml')
    mkdirSync(lab.path('endpoints.yaml'))
    await lab.pass(SETTLED_MS)
    rmdirSync(lab.path('endpoints.yaml'))
    await lab.pass(SETTLED_MS)
    assert.deepEqual(named(lab, 'endpoints.yaml'), [])
    assert.equal(lab.daemon.endpoints.registry.size, 1)
    assert.deepEqual(lab.admin.sourceWarnings?.(), [
      `${lab.path('endpoints.yaml')} is not there: nothing of it is in force`,
    ])
  })
})

test('A file of endpoints that is removed is told once, with the endpoints that no policy holds for any more', async () => {
  await withLab(options, async (lab) => {
    const from = lab.logged.length
    lab.remove('endpoints.yaml')
    await lab.pass(SETTLED_MS)
    lab.write('more.yaml', endpointsText({ more: '127.0.0.3', again: '127.0.0.4' }))
    await lab.pass(SETTLED_MS)
    const message = 'file is not there: nothing of it is in force'
    assert.deepEqual(told(lab, 'endpoints.yaml', from), [[message, ['me', 'other']]])
    lab.write('endpoints.yaml', endpointsText({ me: '127.0.0.1' }))
    await lab.pass(SETTLED_MS)
    lab.remove('endpoints.yaml')
    await lab.pass(SETTLED_MS)
    assert.deepEqual(told(lab, 'endpoints.yaml', from).slice(1), [[message, ['me']]])
  })
})

test('A file of resources that is removed is told once', async () => {
  await withLab(options, async (lab) => {
    const from = lab.logged.length
    lab.remove('resources.yaml')
    await lab.pass(SETTLED_MS)
    assert.equal(lab.daemon.resources.count, 0)
    assert.equal(told(lab, 'resources.yaml', from).length, 1)
  })
})
