// A change over a bound is refused, and the fault is at the changed file, not at a file that was in force before. This is true while the
// daemon runs, and at the next start by the texts that the daemon keeps. The running daemon reports that a start will fail.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { statusView } from '../../src/admin/views/status.ts'
import { InvalidInputError } from '../../src/core/errors.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonLab, withLab, type DaemonLabOptions } from '../support/labs/daemon-lab.ts'
import { MemoryState } from '../support/models/memory-state.ts'

function names(count: number, prefix: string): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}.example`)
}

function resourcesText(...list: readonly string[]): string {
  const lines = list.map(
    (name) => `  - { name: ${name}, addresses: [192.0.2.7], labels: { a: b } }\n`,
  )
  return `resources:\n${lines.join('')}`
}

const FILES: Readonly<Record<string, string>> = {
  'a.yaml': policyText('a', names(4, 'a'), { app: 'me' }),
  'b.yaml': policyText('b', names(1, 'b'), { app: 'me' }),
  'many.yaml': policyText('many', names(12, 'm'), { app: 'other' }),
  'e1.yaml': endpointsText({ me: '127.0.0.1' }),
  'e2.yaml': endpointsText({ you: '127.0.0.2' }),
  'r1.yaml': resourcesText('one'),
  'r2.yaml': resourcesText('two'),
}

const OPTIONS: DaemonLabOptions = {
  files: FILES,
  policies: ['a.yaml', 'b.yaml', 'many.yaml'],
  endpoints: ['e1.yaml', 'e2.yaml'],
  resources: ['r1.yaml', 'r2.yaml'],
}

/** The fault is at the line of the first record over the bound, or of the policy. */
const ROWS: readonly {
  readonly reason: string
  readonly limits: string
  readonly file: string
  readonly text: string
  readonly line: number
  readonly says: RegExp
}[] = [
  {
    reason: 'a policy needs more entries',
    limits: 'policy-entries: 10',
    file: 'b.yaml',
    text: policyText('b', names(20, 'b'), { app: 'me' }),
    line: 5,
    says: /^endpoint me needs \d+ policy entries, limits\.policy-entries allows 10$/,
  },
  {
    reason: 'an endpoint is selected by more',
    limits: 'policy-entries: 10',
    file: 'e1.yaml',
    text: endpointsText({ me: '127.0.0.1', more: '127.0.0.3' }, () => 'other').replace(
      'other',
      'me',
    ),
    line: 3,
    says: /^endpoint more needs \d+ policy entries/,
  },
  {
    reason: 'a policy has more selectors',
    limits: 'selectors: 20',
    file: 'b.yaml',
    text: policyText('b', names(20, 'b'), { app: 'me' }),
    line: 5,
    says: /^found 36 selectors in all/,
  },
  {
    reason: 'the first of two files has an endpoint more',
    limits: 'endpoints: 2',
    file: 'e1.yaml',
    text: endpointsText({ me: '127.0.0.1', more: '127.0.0.3' }),
    line: 3,
    says: /^found 3 endpoints/,
  },
  {
    reason: 'the first of two files has a resource more',
    limits: 'resources: 2',
    file: 'r1.yaml',
    text: resourcesText('one', 'more'),
    line: 3,
    says: /^found 3 resources/,
  },
]

for (const { reason, limits, file, text, line, says } of ROWS) {
  const config = `limits: { ${limits} }`

  test(`Daemon names the file that changed when ${reason}, and reports what a start would do`, async () => {
    await withLab({ ...OPTIONS, config }, async (lab) => {
      assert.deepEqual(statusView(lab.admin).faults, [])
      lab.write(file, text)
      await lab.pass(200)
      await lab.pass(200)
      const { faults, notReady } = statusView(lab.admin)
      assert.deepEqual(
        faults.map((fault) => [fault.file, fault.line]),
        [[lab.path(file), line]],
      )
      assert.match(faults[0]?.message ?? '', says)
      assert.match(
        notReady.join('\n'),
        /passes a bound: .* the next start is refused until it fits/,
      )
      assert.match(
        lab.logged.join('\n'),
        /passes a bound: .* the next start is refused until it fits/,
      )
      lab.write(file, FILES[file] ?? '')
      await lab.pass(200)
      await lab.pass(200)
      assert.deepEqual(statusView(lab.admin).faults, [])
    })
  })

  test(`Daemon names at the start the file that differs from its version in force when ${reason}`, async () => {
    const state = new MemoryState()
    const kept = (folder: string) => {
      for (const [name, before] of Object.entries(FILES)) {
        state.document({ kind: 'source-file', key: join(folder, name), text: before })
      }
      state.flush()
      return { saved: state.read(), sink: state, bootAtZero: 0 }
    }
    const options = { ...OPTIONS, config, kept, files: { ...FILES, [file]: text } }
    await assert.rejects(DaemonLab.start(options), (error) => {
      assert.ok(error instanceof InvalidInputError)
      const places = error.faults.map(({ position }) => [position.file, position.line])
      assert.deepEqual(places, [[places[0]?.[0], line]])
      assert.ok(String(places[0]?.[0]).endsWith(`/${file}`), String(places[0]?.[0]))
      return true
    })
  })
}
