// A folder of policies disappears or becomes unreadable while the daemon runs. That is no removal of its files: what is in force stays, and
// the daemon reports it. Only a file that is missing from a readable folder is removed (docs/spec/semantics 2).

import assert from 'node:assert/strict'
import { renameSync, rmSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import { statusView } from '../../src/admin/views/status.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

const OPTIONS = {
  files: {
    'policies/a.yaml': policyText('web', ['old.example']),
    'policies/sub/b.yaml': policyText('more', ['more.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
  },
  policies: ['policies'],
} as const

/** Longer than any change needs to take effect. */
const LONG = 3000

async function verdicts(lab: DaemonLab): Promise<readonly string[]> {
  const names = ['old.example', 'more.example', 'other.example']
  const found: string[] = []
  for (const name of names) found.push(await lab.verdict(name))
  return found
}

const IN_FORCE = ['NOERROR', 'NOERROR', 'REFUSED 15']

const ROWS: readonly (readonly [what: string, lose: (lab: DaemonLab) => void])[] = [
  ['was moved away', (lab) => renameSync(lab.path('policies'), lab.path('moved'))],
  ['was deleted', (lab) => rmSync(lab.path('policies'), { recursive: true })],
  [
    'is a link that leads nowhere',
    (lab) => {
      renameSync(lab.path('policies'), lab.path('moved'))
      symlinkSync(lab.path('nowhere'), lab.path('policies'))
    },
  ],
  [
    'is a link to itself, which cannot be read',
    (lab) => {
      renameSync(lab.path('policies'), lab.path('moved'))
      symlinkSync(lab.path('policies'), lab.path('policies'))
    },
  ],
]

for (const [what, lose] of ROWS) {
  test(`Daemon keeps policies in force whose folder ${what}, and reports it`, async () => {
    await withLab(OPTIONS, async (lab) => {
      assert.deepEqual(await verdicts(lab), IN_FORCE)
      assert.equal(statusView(lab.admin).faults.length, 0)
      lose(lab)
      await lab.pass(LONG)
      assert.deepEqual(await verdicts(lab), IN_FORCE)
      const status = statusView(lab.admin)
      assert.deepEqual(
        status.faults.map(({ file }) => file),
        [lab.path('policies')],
      )
      assert.equal(status.health, 'degraded')
    })
  })
}

test('Daemon loads what a restored folder holds then', async () => {
  await withLab(OPTIONS, async (lab) => {
    renameSync(lab.path('policies'), lab.path('moved'))
    await lab.pass(LONG)
    lab.write('moved/a.yaml', policyText('web', ['other.example']))
    rmSync(lab.path('moved/sub'), { recursive: true })
    renameSync(lab.path('moved'), lab.path('policies'))
    await lab.pass(LONG)
    assert.deepEqual(await verdicts(lab), ['REFUSED 15', 'REFUSED 15', 'NOERROR'])
    assert.equal(statusView(lab.admin).faults.length, 0)
  })
})

test('Daemon removes a missing folder within the configured one', async () => {
  await withLab(OPTIONS, async (lab) => {
    rmSync(lab.path('policies/sub'), { recursive: true })
    await lab.pass(LONG)
    assert.deepEqual(await verdicts(lab), ['NOERROR', 'REFUSED 15', 'REFUSED 15'])
    assert.equal(statusView(lab.admin).faults.length, 0)
  })
})
