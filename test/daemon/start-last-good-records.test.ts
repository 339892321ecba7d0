// Files of endpoints and resources that are broken or missing at the start keep their last version in force, as policy files do. The daemon
// reports it as at run time, and loads them when they are repaired.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { statusView } from '../../src/admin/views/status.ts'
import { InvalidInputError } from '../../src/core/errors.ts'
import { until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonLab, withLab, type DaemonLabOptions } from '../support/labs/daemon-lab.ts'
import { MemoryState } from '../support/models/memory-state.ts'

interface Row {
  readonly file: string
  /** The last version, and a repaired one. */
  readonly before: string
  readonly after: string
  readonly broken: string
  /** What is in force of the file. */
  readonly names: (lab: DaemonLab) => readonly string[]
}

function resources(name: string): string {
  return `resources:\n  - { name: ${name}, addresses: [192.0.2.7], labels: { app: db } }\n`
}

const ROWS: readonly Row[] = [
  {
    file: 'endpoints.yaml',
    before: endpointsText({ before: '127.0.0.1' }),
    after: endpointsText({ after: '127.0.0.1' }),
    broken: 'endpoints:\n  - { name: me, addresses: [127.0.0.300] }\n',
    names: (lab) => [...lab.daemon.endpoints.registry].map(({ name }) => name),
  },
  {
    file: 'resources.yaml',
    before: resources('before'),
    after: resources('after'),
    broken: 'resources:\n  - { name: db, addresses: [] }\n',
    names: (lab) => [...lab.daemon.resources.resources].map(({ name }) => name),
  },
]

/** A daemon whose file is broken now, and whose last version in force was `text`. */
function options(state: MemoryState, row: Row, text?: string, now = row.broken): DaemonLabOptions {
  const files = {
    'policy.yaml': policyText('web', ['a.example']),
    'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    'resources.yaml': resources('db'),
    [row.file]: now,
  }
  return {
    files,
    resources: ['resources.yaml'],
    kept: (folder) => {
      const key = join(folder, row.file)
      if (text !== undefined) state.document({ kind: 'source-file', key, text })
      state.flush()
      return { saved: state.read(), sink: state, bootAtZero: 0 }
    },
  }
}

for (const row of ROWS) {
  const { file, before, after, broken, names } = row

  test(`Daemon starts over broken ${file} with the last version in force, and reports it`, async () => {
    await withLab(options(new MemoryState(), row, before), async (lab) => {
      assert.deepEqual(names(lab), ['before'])
      const { health, faults } = statusView(lab.admin)
      assert.deepEqual([health, faults.map((each) => each.file)], ['degraded', [lab.path(file)]])
      assert.match(lab.logged.join('\n'), new RegExp(`${file}:2:\\d+: .*file refused, what was in`))
      assert.match(await lab.admin.metrics(), /^namegate_record_files\{state="last-good"\} 1$/m)

      lab.write(file, after)
      await lab.pass(200)
      await lab.pass(200)
      assert.deepEqual(names(lab), ['after'])
      // The answer of the upstream to the first probe can arrive later.
      await until('health ok', () => statusView(lab.admin).health === 'ok')
    })
  })

  test(`Daemon starts without ${file} with the last version in force, and reports it`, async () => {
    const state = new MemoryState()
    const prepare = (folder: string): void => rmSync(join(folder, file))
    await withLab({ ...options(state, row, before), prepare }, async (lab) => {
      for (const when of ['at the start', 'later'] as const) {
        assert.deepEqual(names(lab), ['before'], when)
        const { health, faults } = statusView(lab.admin)
        assert.deepEqual(
          [health, faults.map((each) => each.file)],
          ['degraded', [lab.path(file)]],
          when,
        )
        assert.match(faults[0]?.message ?? '', /^the file is not there, .*: put it back, or /, when)
        await lab.pass(3000)
      }
      assert.match(lab.logged.join('\n'), new RegExp(`${file}:1:1: the file is not there`))
      lab.write(file, after)
      await lab.pass(200)
      await lab.pass(200)
      assert.deepEqual(names(lab), ['after'])
      lab.remove(file)
      await lab.pass(3000)
      lab.daemon.stop()
      assert.equal(state.read()?.sourceFiles.get(lab.path(file)), after, 'kept for the next start')
    })
  })

  test(`Daemon does not start without ${file} if no version is kept`, async () => {
    const prepare = (folder: string): void => rmSync(join(folder, file))
    for (const text of [undefined, broken]) {
      const start = DaemonLab.start({ ...options(new MemoryState(), row, text), prepare })
      await assert.rejects(start, (error) => {
        assert.ok(error instanceof InvalidInputError)
        const [fault, ...more] = error.faults
        assert.match(fault?.message ?? '', new RegExp(`^found no file or folder .*${file}`))
        assert.deepEqual(more, [])
        return true
      })
    }
  })

  test(`Daemon keeps the text of ${file} that is in force, not of a broken version`, async () => {
    const state = new MemoryState()
    await withLab(options(state, row, undefined, before), async (lab) => {
      lab.write(file, broken)
      await lab.pass(200)
      await lab.pass(200)
      lab.daemon.stop()
      assert.equal(state.read()?.sourceFiles.get(lab.path(file)), before)
    })
  })

  test(`Daemon does not start over broken ${file} if no version is kept`, async () => {
    for (const text of [undefined, broken]) {
      const start = DaemonLab.start(options(new MemoryState(), row, text))
      await assert.rejects(start, InvalidInputError)
    }
  })
}
