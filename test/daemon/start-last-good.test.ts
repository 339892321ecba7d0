// A policy file that is broken at the start keeps its last version in force, if the state folder has its text. The daemon reports it as at
// run time, and loads the file when it is repaired. Without that text, the daemon does not start.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { InvalidInputError } from '../../src/core/errors.ts'
import type { SavedDocument } from '../../src/restore/state-port.ts'
import { KEPT_TEXT_MAX } from '../../src/sources/files/last-good-texts.ts'
import { DaemonLab, withLab, type DaemonLabOptions } from '../support/labs/daemon-lab.ts'
import { MemoryState } from '../support/models/memory-state.ts'

const ENDPOINTS = `
endpoints:
  - { name: client, addresses: [127.0.0.0/24], labels: { app: shop } }
`

function policy(pattern: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: names }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '${pattern}' }] } }]
`
}

const GOOD = policy('*.good.test')
const BROKEN = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nspec: [1, 2\n'

interface Before {
  readonly text?: string
  readonly now: string
  readonly more?: Readonly<Record<string, string>>
}

/** A daemon whose file was `text` when it was last in force. */
function options(state: MemoryState, { text, now, more = {} }: Before): DaemonLabOptions {
  return {
    files: { 'endpoints.yaml': ENDPOINTS, 'policy.yaml': now, ...more },
    policies: ['policy.yaml', ...Object.keys(more)],
    kept: (folder) => {
      const key = join(folder, 'policy.yaml')
      if (text !== undefined) state.document({ kind: 'source-file', key, text })
      state.flush()
      return { saved: state.read(), sink: state, bootAtZero: 0 }
    },
  }
}

function keptText(state: MemoryState, lab: DaemonLab): string | undefined {
  lab.daemon.stop()
  return state.read()?.sourceFiles.get(lab.path('policy.yaml'))
}

test('Daemon keeps the text of a policy file in force, and of none that is broken or missing', async () => {
  const state = new MemoryState()
  await withLab(options(state, { now: GOOD }), async (lab) => {
    lab.write('policy.yaml', BROKEN)
    await lab.pass(200)
    await lab.pass(200)
    assert.equal(lab.daemon.sources.policyFiles[0]?.state, 'last-good')
    assert.equal(keptText(state, lab), GOOD)
  })
})

for (const [what, now] of [
  ['is broken', BROKEN],
  ['was emptied', ''],
  ['has its lines commented out', GOOD.replaceAll(/^/gm, '#')],
] as const) {
  test(`Daemon does not start over a policy file that ${what}, without a kept version`, async () => {
    const refused = withLab(options(new MemoryState(), { now }), async () => undefined)
    await assert.rejects(refused, InvalidInputError)
  })
}

for (const [place, put] of [
  ['a link without a target', (path: string) => symlinkSync('/nowhere/at/all', path)],
  ['a folder', (path: string) => mkdirSync(path)],
] as const) {
  const prepare = (folder: string): void => {
    rmSync(join(folder, 'policy.yaml'))
    put(join(folder, 'policy.yaml'))
  }

  test(`Daemon starts with the last version in force where ${place} is in the place of a policy file`, async () => {
    const given = options(new MemoryState(), { text: GOOD, now: GOOD })
    await withLab({ ...given, prepare }, async (lab) => {
      assert.equal(await lab.verdict('a.good.test'), 'NOERROR')
      assert.equal(await lab.verdict('a.bad.test'), 'REFUSED 15')
      assert.equal(lab.daemon.sources.policyFiles[0]?.state, 'last-good')
    })
  })
}

test('Daemon starts without a configured policy file with the last version in force, and reports it', async () => {
  const prepare = (folder: string): void => rmSync(join(folder, 'policy.yaml'))
  const state = new MemoryState()
  await withLab({ ...options(state, { text: GOOD, now: GOOD }), prepare }, async (lab) => {
    assert.equal(await lab.verdict('a.good.test'), 'NOERROR')
    assert.equal(await lab.verdict('a.bad.test'), 'REFUSED 15')
    const [file] = lab.daemon.sources.policyFiles
    assert.equal(file?.state, 'last-good')
    assert.match(file.faults[0]?.message ?? '', /^the file is not there, /)
    assert.equal(keptText(state, lab), GOOD)
  })
})

test('Daemon does not start over a link without a target, without a kept version', async () => {
  const prepare = (folder: string): void => {
    rmSync(join(folder, 'policy.yaml'))
    symlinkSync('/nowhere/at/all', join(folder, 'policy.yaml'))
  }
  const refused = withLab(
    { ...options(new MemoryState(), { now: GOOD }), prepare },
    async () => undefined,
  )
  await assert.rejects(refused, InvalidInputError)
})

test('Daemon starts over an emptied policy file with the last version in force, and reports it', async () => {
  const state = new MemoryState()
  await withLab(options(state, { text: GOOD, now: '' }), async (lab) => {
    assert.equal(await lab.verdict('a.good.test'), 'NOERROR')
    assert.match(await lab.verdict('a.other.test'), /^REFUSED/)
    assert.deepEqual(
      lab.daemon.sources.policyFiles.map(({ state: each }) => each),
      ['last-good'],
    )
    assert.equal(keptText(state, lab), GOOD)
  })
})

test('Daemon starts over a broken policy file with the last version in force, and reports it', async () => {
  const state = new MemoryState()
  await withLab(options(state, { text: GOOD, now: BROKEN }), async (lab) => {
    assert.equal(await lab.verdict('a.good.test'), 'NOERROR')
    assert.match(await lab.verdict('a.other.test'), /^REFUSED/)
    const [file] = lab.daemon.sources.policyFiles
    assert.equal(file?.state, 'last-good')
    const [fault] = file.faults
    assert.deepEqual([fault?.position.file, fault?.position.line], [lab.path('policy.yaml'), 4])
    assert.match(lab.logged.join('\n'), /policy\.yaml:4:\d+: .*file refused, what was in force/)

    lab.write('policy.yaml', policy('*.other.test'))
    await lab.pass(200)
    await lab.pass(200)
    assert.equal(await lab.verdict('a.other.test'), 'NOERROR')
    assert.match(await lab.verdict('a.good.test'), /^REFUSED/)
    assert.equal(lab.daemon.sources.policyFiles[0]?.state, 'in-force')
    assert.equal(keptText(state, lab), policy('*.other.test'))
    assert.equal(repairs(lab).length, 1)
  })
})

test('Daemon logs that a broken file is in force again, also when nothing changes', async () => {
  await withLab(options(new MemoryState(), { now: GOOD }), async (lab) => {
    for (const [text, count, why] of [
      [BROKEN, 0, 'a fault'],
      [`${BROKEN}# still`, 0, 'another fault'],
      [GOOD, 1, 'the text from before'],
      [policy('*.other.test'), 1, 'an ordinary change'],
    ] as const) {
      lab.write('policy.yaml', text)
      await lab.pass(200)
      await lab.pass(200)
      assert.equal(repairs(lab).length, count, why)
    }
    assert.match(repairs(lab).join(), /policy\.yaml/)
  })
})

function repairs(lab: DaemonLab): readonly string[] {
  return lab.logged.filter((line) => line.includes('in force again'))
}

const REFUSED: readonly (readonly [reason: string, before: Before])[] = [
  ['no version is kept', { now: BROKEN }],
  ['the kept version is invalid now', { text: BROKEN, now: BROKEN }],
  [
    'the kept version contradicts another file',
    { text: GOOD, now: BROKEN, more: { 'z.yaml': GOOD } },
  ],
]

for (const [reason, before] of REFUSED) {
  test(`Daemon does not start over a broken policy file: ${reason}`, async () => {
    await assert.rejects(DaemonLab.start(options(new MemoryState(), before)), InvalidInputError)
  })
}

test('Daemon does not keep a text over the bound, and counts it', async () => {
  const state = new MemoryState()
  const long = `${GOOD}# ${'x'.repeat(KEPT_TEXT_MAX)}\n`
  await withLab(options(state, { text: GOOD, now: long }), async (lab) => {
    assert.equal(lab.daemon.sources.fileTexts?.tooLong, 1)
    assert.equal(keptText(state, lab), undefined, 'nor the version before')
  })
})

test('Daemon drops the text of a missing file', async () => {
  const state = new MemoryState()
  const gone: SavedDocument = { kind: 'source-file', key: '/no/such.yaml', text: GOOD }
  state.document(gone)
  await withLab(options(state, { now: GOOD }), async (lab) => {
    lab.daemon.stop()
    const kept = [...(state.read()?.sourceFiles.keys() ?? [])].sort()
    assert.deepEqual(kept, [lab.path('endpoints.yaml'), lab.path('policy.yaml')])
  })
})

test('Daemon keeps the text in force of files while others contradict each other', async () => {
  const state = new MemoryState()
  const before = GOOD.replace('name: names', 'name: more')
  const more = { 'z.yaml': before }
  await withLab(options(state, { now: GOOD, more }), async (lab) => {
    const other = ENDPOINTS.replace('name: client', 'name: other')
    lab.write('z.yaml', GOOD)
    lab.write('endpoints.yaml', other)
    await lab.pass(200)
    await lab.pass(200)
    assert.equal(lab.daemon.endpoints.registry.byName('other')?.name, 'other')
    assert.equal(keptText(state, lab), GOOD)
    const texts = state.read()?.sourceFiles
    assert.equal(texts?.get(lab.path('endpoints.yaml')), other)
    assert.equal(texts.get(lab.path('z.yaml')), before, 'the version before the contradiction')
  })
})
