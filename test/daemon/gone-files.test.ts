// Configured files of endpoints, resources and policies that go away or have a folder in their place under a running daemon.

import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { faultsOf, statusView } from '../../src/admin/views/status.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'

const ENDPOINTS = endpointsText({ me: '127.0.0.1', other: '127.0.0.2' })
const RESOURCES = 'resources: [ { name: db, addresses: [192.0.2.1], labels: { app: db } } ]\n'
const options = {
  files: {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': ENDPOINTS,
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

/** Lines of the log that name the file. */
function linesOf(lab: DaemonLab, name: string): number {
  return lab.logged.filter((line) => line.includes(lab.path(name))).length
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

const END = 'or take it out of the configuration and start the daemon again'
const FILES = [
  [
    'endpoints.yaml',
    ENDPOINTS,
    `the file is not there, its last good version stays in force: put it back, or write 'endpoints: []' to remove all its endpoints (then no policy restricts them), ${END}`,
  ],
  [
    'resources.yaml',
    RESOURCES,
    `the file is not there, its last good version stays in force: put it back, or write 'resources: []' to remove all its resources, ${END}`,
  ],
  [
    'policy.yaml',
    policyText('web', ['a.example']),
    `the file is not there, its last good version stays in force: put it back, ${END}`,
  ],
] as const

const WAYS: readonly (readonly [way: string, lose: (path: string) => void])[] = [
  ['was deleted', (path) => rmSync(path)],
  ['was moved', (path) => renameSync(path, `${path}.aside`)],
  [
    'had a folder in its place for a while',
    (path) => {
      rmSync(path)
      mkdirSync(path)
    },
  ],
]

/** What is in force of all files, and what it decides. */
async function inForce(lab: DaemonLab): Promise<readonly unknown[]> {
  const { endpoints, resources, policies } = lab.daemon
  return [
    endpoints.registry.size,
    resources.count,
    policies.policies.length,
    await lab.verdict('a.example'),
    await lab.verdict('b.example'),
  ]
}

const ALL = [3, 1, 1, 'NOERROR', 'REFUSED 15']

for (const [name, text, message] of FILES) {
  for (const [way, lose] of WAYS) {
    test(`A configured ${name} that ${way} is a fault of that file, which stays in force`, async () => {
      await withLab(options, async (lab) => {
        assert.deepEqual(await inForce(lab), ALL)
        lose(lab.path(name))
        await lab.pass(SETTLED_MS)
        rmSync(lab.path(name), { recursive: true, force: true })
        await lab.pass(SETTLED_MS)
        assert.deepEqual(named(lab, name), [message])
        assert.equal(statusView(lab.admin).health, 'degraded')
        assert.deepEqual(await inForce(lab), ALL)
        const lines = linesOf(lab, name)
        await lab.pass(SETTLED_MS)
        assert.ok(lines > 0, 'the log has the fault')
        assert.equal(linesOf(lab, name), lines, 'the log has it once')
        lab.write(name, text)
        await lab.pass(SETTLED_MS)
        assert.deepEqual(named(lab, name), [])
        assert.deepEqual(await inForce(lab), ALL)
      })
    })
  }
}

test('A configured file whose folder goes is a fault of that file, which stays in force', async () => {
  const away = {
    files: {
      'policy.yaml': policyText('web', ['a.example']),
      'lists/endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    },
    endpoints: ['lists/endpoints.yaml'],
  }
  await withLab(away, async (lab) => {
    const path = lab.path('lists/endpoints.yaml')
    renameSync(dirname(path), `${dirname(path)}-aside`)
    await lab.pass(SETTLED_MS)
    assert.equal(named(lab, 'lists/endpoints.yaml').length, 1)
    assert.equal(await lab.verdict('b.example'), 'REFUSED 15')
    renameSync(`${dirname(path)}-aside`, dirname(path))
    await lab.pass(SETTLED_MS)
    assert.deepEqual(faultsOf(lab.admin), [])
  })
})

for (const [name, none] of [
  ['endpoints.yaml', 'endpoints: []\n'],
  ['resources.yaml', 'resources: []\n'],
] as const) {
  test(`An empty list in the place of a missing ${name} removes what it said`, async () => {
    await withLab(options, async (lab) => {
      lab.remove(name)
      await lab.pass(SETTLED_MS)
      lab.write(name, none)
      await lab.pass(SETTLED_MS)
      assert.deepEqual(named(lab, name), [])
      const { endpoints, resources } = lab.daemon
      const left = name === 'endpoints.yaml' ? [1, 1] : [3, 0]
      assert.deepEqual([endpoints.registry.size, resources.count], left)
    })
  })
}
