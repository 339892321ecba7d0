// Files under a running daemon in whose place something stands that cannot be read as a file: their last good version stays
// in force, and each is reported. Only a deleted file takes what it says out of force.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import { faultsOf } from '../../src/admin/views/status.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'

const options = {
  files: {
    'policies/web.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
  },
  policies: ['policies'],
  endpoints: ['endpoints.yaml'],
}
/** Longer than it takes until a file that went counts as gone. */
const SETTLED_MS = 3000

const places: readonly (readonly [
  place: string,
  put: (path: string) => void,
  fault: RegExp,
  reason: string,
])[] = [
  [
    'a link without a target',
    (path) => symlinkSync('/nowhere/at/all', path),
    /^cannot read: ENOENT/,
    'its target can return',
  ],
  [
    'a link to itself',
    (path) => symlinkSync(path, path),
    /^cannot read: ELOOP/,
    'it leads to no file',
  ],
  ['a folder', (path) => mkdirSync(path), /^cannot read: it is no regular file/, 'it has no text'],
]

function faults(lab: DaemonLab, name: string): readonly string[] {
  return faultsOf(lab.admin)
    .filter(({ file }) => file === lab.path(name))
    .map(({ message }) => message)
}

for (const name of ['policies/web.yaml', 'endpoints.yaml'] as const) {
  for (const [place, put, fault, reason] of places) {
    test(`${name} with ${place} in its place stays in force as a fault of that file: ${reason}`, async () => {
      await withLab(options, async (lab) => {
        rmSync(lab.path(name))
        put(lab.path(name))
        await lab.pass(SETTLED_MS)
        const found = faults(lab, name)
        assert.equal(found.length, 1, found.join('\n'))
        assert.match(found[0] ?? '', fault)
        assert.equal(lab.daemon.endpoints.registry.size, 1)
        assert.equal(await lab.verdict('a.example'), 'NOERROR')
        assert.equal(await lab.verdict('b.example'), 'REFUSED 15')
        rmSync(lab.path(name), { recursive: true })
        lab.write(name, options.files[name])
        await lab.pass(SETTLED_MS)
        assert.deepEqual(faults(lab, name), [])
        assert.equal(await lab.verdict('b.example'), 'REFUSED 15')
      })
    })
  }
}

test('A policy file whose link loses its target stays in force until the link itself is removed', async () => {
  const files = { ...options.files, 'elsewhere/web': options.files['policies/web.yaml'] }
  const prepare = (folder: string): void => {
    rmSync(`${folder}/policies/web.yaml`)
    symlinkSync('../elsewhere/web', `${folder}/policies/web.yaml`)
  }
  await withLab({ ...options, files, prepare }, async (lab) => {
    assert.equal(await lab.verdict('b.example'), 'REFUSED 15')
    lab.remove('elsewhere/web')
    await lab.pass(SETTLED_MS)
    assert.match(faults(lab, 'policies/web.yaml').join('\n'), /^cannot read: ENOENT/)
    assert.equal(await lab.verdict('b.example'), 'REFUSED 15')
    lab.remove('policies/web.yaml')
    await lab.pass(SETTLED_MS)
    assert.deepEqual(faults(lab, 'policies/web.yaml'), [])
    assert.equal(await lab.verdict('b.example'), 'NOERROR', 'no policy selects the endpoint')
  })
})
