// When a change of a file takes effect (docs/spec/semantics 2), seen in the answers of the daemon, with real files and fake time.

import assert from 'node:assert/strict'
import { truncateSync } from 'node:fs'
import { test } from 'node:test'
import { flowView } from '../../src/admin/views/flows.ts'
import { policyRows } from '../../src/admin/views/policies.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { endpointsText, MountedFolder, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab, type DaemonLabOptions } from '../support/labs/daemon-lab.ts'

const ME = endpointsText({ me: '127.0.0.1' })
const OLD = policyText('web', ['old.example'])
const NEW = policyText('web', ['new.example'])
/** Two looks at the files, and the quiet time between them. */
const SETTLED = 200

async function verdicts(lab: DaemonLab): Promise<readonly string[]> {
  return [await lab.verdict('old.example'), await lab.verdict('new.example')]
}

const OLD_RULES = ['NOERROR', 'REFUSED 15']
const NEW_RULES = ['REFUSED 15', 'NOERROR']
const ANYTHING = ['NOERROR', 'NOERROR']

const ONE = { files: { 'policy.yaml': OLD, 'endpoints.yaml': ME } } as const
/** The same in a folder of policies, where a missing file counts as removed. */
const FOLDER = {
  files: { 'policies/policy.yaml': OLD, 'endpoints.yaml': ME },
  policies: ['policies'],
} as const

test('Daemon reads a changed policy when it was quiet for 100 ms, not during the write', async () => {
  await withLab(ONE, async (lab) => {
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    const { revision } = lab.daemon.policies
    const lines = NEW.split('\n').map((line) => `${line}\n`)
    lab.write('policy.yaml', '')
    for (const line of lines) {
      lab.append('policy.yaml', line)
      await lab.pass(90)
      assert.equal(lab.daemon.policies.revision, revision, `after ${line}`)
    }
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
    assert.equal(lab.daemon.policies.revision, revision + 1)
    assert.equal(lab.daemon.transition.realizedRevision, revision + 1)
  })
})

test('Daemon keeps the last good version of a broken file, and reports it everywhere', async () => {
  await withLab(ONE, async (lab) => {
    const { revision } = lab.daemon.policies
    lab.write('policy.yaml', NEW.replace('toFQDNs', 'toFQDN'))
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    const file = lab.path('policy.yaml')
    const [row] = [...policyRows(lab.admin)]
    assert.equal(row?.state, 'last-good')
    assert.ok(row?.error?.startsWith(`${file}:8:7: unknown field`), row?.error ?? '')
    assert.equal(lab.daemon.policies.revision, revision)
    const status = statusView(lab.admin)
    assert.deepEqual(
      status.faults.map(({ file: at, line, column }) => [at, line, column]),
      [[file, 8, 7]],
    )
    assert.equal(status.health, 'degraded')
    assert.match(await lab.admin.metrics(), /namegate_policy_files\{state="last-good"\} 1\n/)
    lab.write('policy.yaml', NEW)
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
    assert.equal([...policyRows(lab.admin)][0]?.state, 'in-force')
    assert.match(await lab.admin.metrics(), /namegate_policy_files\{state="last-good"\} 0\n/)
  })
})

test('Daemon removes the policies of a missing file after 1 s, and names the endpoints that lost their policy', async () => {
  await withLab(FOLDER, async (lab) => {
    lab.remove('policies/policy.yaml')
    await lab.pass(1000)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    const before = lab.daemon.flows.count
    await lab.pass(200)
    assert.deepEqual(flowView(lab.admin, before, 'policy-lost'), {
      number: before,
      time: flowView(lab.admin, before, undefined)?.time,
      kind: 'policy-lost',
      verdict: 'event',
      endpoint: 'me',
      endpointLabels: ['external:app=me'],
      policies: 'default/web',
    })
    assert.deepEqual(await verdicts(lab), ANYTHING)
    const { faults, warnings } = statusView(lab.admin)
    assert.deepEqual(faults, [])
    assert.deepEqual(warnings, [
      'default-egress is allow, and no policy selects endpoint me: it is open',
    ])
    lab.write('policies/policy.yaml', OLD)
    await lab.pass(SETTLED)
    assert.deepEqual(statusView(lab.admin).warnings, [])
    assert.deepEqual(await verdicts(lab), OLD_RULES)
  })
})

const ALLOWED = { 'policies/list.allow': 'old.example\n', 'endpoints.yaml': ME }
const WITHOUT_DOCUMENT: readonly (readonly [why: string, file: string, text: string])[] = [
  ['is emptied', 'policies/policy.yaml', ''],
  ['is emptied but for a line end', 'policies/policy.yaml', '\n'],
  ['is emptied but for a byte order mark', 'policies/policy.yaml', '\ufeff'],
  ['has every line commented out', 'policies/policy.yaml', OLD.replaceAll(/^/gm, '# ')],
  ['has only document marks', 'policies/policy.yaml', '---\n---\n'],
  ['is null', 'policies/policy.yaml', 'null\n'],
  [
    'has a document without a spec',
    'policies/policy.yaml',
    OLD.replace(/^spec:[^]*/m, 'specs: []\n'),
  ],
  ['is an allow-list that is emptied', 'policies/list.allow', ''],
  ['is an allow-list of comments', 'policies/list.allow', '# old.example\n'],
]
for (const [why, file, text] of WITHOUT_DOCUMENT) {
  test(`Daemon keeps a policy file in force that ${why}, and reports the fault`, async () => {
    const files = file === 'policies/list.allow' ? ALLOWED : FOLDER.files
    await withLab({ files, policies: ['policies'] }, async (lab) => {
      const { revision } = lab.daemon.policies
      lab.write(file, text)
      await lab.pass(5000)
      assert.deepEqual(await verdicts(lab), OLD_RULES)
      assert.equal(lab.daemon.policies.revision, revision)
      const { faults, health, warnings } = statusView(lab.admin)
      assert.deepEqual(
        [faults.map((fault) => fault.file), health, warnings],
        [[lab.path(file)], 'degraded', []],
      )
      assert.match(await lab.admin.metrics(), /namegate_policy_files\{state="last-good"\} 1\n/)
      lab.remove(file)
      await lab.pass(1200)
      assert.deepEqual(await verdicts(lab), ANYTHING, 'a deleted file removes its policy')
    })
  })
}

for (const [what, act] of [
  ['empty', (lab: DaemonLab) => lab.empty('policy.yaml')],
  ['gone', (lab: DaemonLab) => lab.remove('policy.yaml')],
] as const) {
  test(`Daemon ignores a policy file that is ${what} for less than 1 s`, async () => {
    await withLab(ONE, async (lab) => {
      const { revision } = lab.daemon.policies
      for (let i = 0; i < 3; i++) {
        act(lab)
        await lab.pass(900)
        lab.write('policy.yaml', OLD)
        await lab.pass(100)
        assert.deepEqual(await verdicts(lab), OLD_RULES)
      }
      act(lab)
      await lab.pass(900)
      lab.write('policy.yaml', NEW)
      await lab.pass(SETTLED)
      assert.deepEqual(await verdicts(lab), NEW_RULES)
      assert.ok(lab.daemon.policies.revision > revision)
    })
  })
}

test('Daemon does not load a file that changes between the look and the read', async () => {
  await withLab(ONE, async (lab) => {
    lab.write('policy.yaml', NEW)
    await lab.pass(100)
    lab.onNow = () => truncateSync(lab.path('policy.yaml'))
    await lab.pass(100)
    assert.notDeepEqual(await verdicts(lab), ANYTHING)
    lab.onNow = () => undefined
    lab.write('policy.yaml', NEW)
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
  })
})

test('Daemon reads again at SIGHUP, but no file during an edit', async () => {
  await withLab(ONE, async (lab) => {
    lab.empty('policy.yaml')
    lab.daemon.sources.reload()
    await lab.pass(500)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    lab.write('policy.yaml', NEW)
    lab.daemon.sources.reload()
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
  })
})

test('Daemon reads files without a watch at SIGHUP, and notices removed ones', async () => {
  await withLab({ ...FOLDER, watch: false }, async (lab) => {
    lab.write('policies/policy.yaml', NEW)
    await lab.pass(5000)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    lab.daemon.sources.reload()
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
    lab.remove('policies/policy.yaml')
    await lab.pass(5000)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
    lab.daemon.sources.reload()
    await lab.pass(1200)
    assert.deepEqual(await verdicts(lab), ANYTHING)
  })
})

test('Daemon handles the swap of a mounted folder as one change, with its removed files', async () => {
  let mounted: MountedFolder | undefined
  const options: DaemonLabOptions = {
    files: { 'endpoints.yaml': ME },
    policies: ['mounted'],
    prepare: (folder) => {
      mounted = new MountedFolder(`${folder}/mounted`, {
        'a.yaml': OLD,
        'b.yaml': policyText('more', ['more.example']),
      })
    },
  }
  await withLab(options, async (lab) => {
    const { revision } = lab.daemon.policies
    assert.equal(await lab.verdict('more.example'), 'NOERROR')
    mounted?.publish({ 'a.yaml': NEW })
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), NEW_RULES)
    assert.equal(await lab.verdict('more.example'), 'REFUSED 15')
    await lab.pass(2000)
    assert.equal(lab.daemon.policies.revision, revision + 1)
    mounted?.publish({ 'c.yaml': OLD })
    await lab.pass(SETTLED)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    await lab.pass(2000)
    assert.deepEqual(await verdicts(lab), OLD_RULES)
    assert.equal(lab.daemon.policies.revision, revision + 2)
    assert.deepEqual([...lab.daemon.sources.policyFiles].length, 1)
  })
})
