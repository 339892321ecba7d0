// Lines of `status` and of a table that need a state of their own.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import type { AdminState } from '../../../src/admin/state.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { namegate, runCommand } from '../../support/nodes/command.ts'
import { Node } from '../../support/nodes/node.ts'

const getCommand = namegate('get')
const statusCommand = namegate('status')

const folder = mkdtempSync(join(tmpdir(), 'namegate-status-'))
const socket = join(folder, 'admin.sock')
let use: NonNullable<AdminState['kept']>['use'] = {
  generation: 3,
  imageOctets: 0,
  journalOctets: 0,
  age: 5,
  isFailing: false,
  damage: [],
  faults: {},
}
const counters = { repaired: 0 }
const position = { file: 'p.yaml', line: 2, column: 3 }
const { state } = mkAdmin(new Node(), {
  clock: systemClock,
  repair: { counters },
  kept: {
    get use() {
      return use
    },
  },
  policyFiles: () => [
    {
      path: 'p.yaml',
      policies: [],
      state: 'rejected',
      faults: [
        { position, message: 'found x' },
        { position, message: 'found y' },
      ],
    },
  ],
})
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('statusCommand says of the state folder when nothing was written, and counts failures', async () => {
  const rows: readonly (readonly [given: Partial<typeof use>, line: string])[] = [
    [{}, 'generation 3, nothing written yet'],
    [{ faults: { 'read-only': 1 } }, 'generation 3, nothing written yet, 1 write failed'],
    [
      { imageOctets: 9, faults: { 'read-only': 1, other: 1 } },
      'generation 3, image 9 octets, journal 0, written 5 s ago, 2 writes failed',
    ],
    [{ imageOctets: 9 }, 'generation 3, image 9 octets, journal 0, written 5 s ago'],
    [
      { imageOctets: 0, journalOctets: 7 },
      'generation 3, image 0 octets, journal 7, written 5 s ago',
    ],
  ]
  const before = use
  for (const [given, line] of rows) {
    use = { ...before, ...given }
    const { out } = await runCommand(statusCommand, '--socket', socket)
    assert.equal(/^kept: +(.*)$/m.exec(out)?.[1], line)
  }
})

test('statusCommand counts the entries that were repaired, when there are some', async () => {
  const rows: readonly (readonly [repaired: number, end: string])[] = [
    [0, '0 entries refused'],
    [1, '0 entries refused, 1 repaired'],
    [12, '0 entries refused, 12 repaired'],
  ]
  for (const [repaired, end] of rows) {
    counters.repaired = repaired
    const { out } = await runCommand(statusCommand, '--socket', socket)
    assert.equal(/^datapath: +memory, revision \d+, (.*)$/m.exec(out)?.[1], end)
  }
})

test('getCommand shows all faults of a file in one cell', async () => {
  const { out } = await runCommand(getCommand, 'policies', '--socket', socket)
  assert.match(out, /rejected .* p\.yaml:2:3: found x; p\.yaml:2:3: found y\n$/)
})
