// Lines of `status` and of a table that need a state of their own.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../../src/admin/server.ts'
import type { AdminState } from '../../../src/admin/state.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { FLOW_KINDS, type FlowKind } from '../../../src/flows/record/flow-kinds.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { mkTerminal, namegate, runCommand, runCommandOn } from '../../support/nodes/command.ts'
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
type Progress = NonNullable<AdminState['restart']>['progress']
let progress: Progress = { phase: 'done', restored: 0, left: 0, claimed: 0, kept: 0 }
let audited = false
const { state } = mkAdmin(new Node(), {
  nodeAudit: () => ({ on: audited, origin: 'run time' }),
  clock: systemClock,
  repair: { counters },
  restart: {
    get progress() {
      return progress
    },
  },
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
    [{}, 'nothing yet'],
    [{ faults: { 'read-only': 1 } }, 'nothing yet, 1 write failed'],
    [
      { imageOctets: 9, journalOctets: 7, faults: { 'read-only': 1, other: 1 } },
      '16 octets, last written 5 s ago, 2 writes failed',
    ],
    [{ imageOctets: 9 }, '9 octets, last written 5 s ago'],
    [{ imageOctets: 0, journalOctets: 7 }, '7 octets, last written 5 s ago'],
  ]
  const before = use
  for (const [given, line] of rows) {
    use = { ...before, ...given }
    const { out } = await runCommand(statusCommand, '--socket', socket)
    assert.equal(/^saved: +(.*)$/m.exec(out)?.[1], line)
  }
})

test('statusCommand says what a restart brought back, and nothing after a fresh start', async () => {
  const none = { phase: 'grace', restored: 0, left: 0, claimed: 0, kept: 0 } as const
  const rows: readonly (readonly [given: Partial<Progress>, line: string | undefined])[] = [
    [{}, undefined],
    [{ restored: 3, phase: 'done' }, undefined],
    [{ restored: 3 }, '3 learned addresses back'],
    [{ restored: 1, left: 2 }, '1 learned address back, 2 learned addresses to come'],
    [{ left: 2 }, '2 learned addresses to come'],
    [
      { restored: 3, claimed: 5, kept: 1 },
      '3 learned addresses back, 5 kernel entries taken over, 1 kernel entry left as found',
    ],
    [{ claimed: 1 }, '1 kernel entry taken over'],
    [{ kept: 2 }, '2 kernel entries left as found'],
  ]
  for (const [given, line] of rows) {
    progress = { ...none, ...given }
    const { out } = await runCommand(statusCommand, '--socket', socket)
    assert.equal(/^restart: +(.*)$/m.exec(out)?.[1], line)
  }
})

test('statusCommand says how much audit let pass, while it is on and after it let something pass', async () => {
  const line = async (): Promise<string | undefined> =>
    /^audit: +(.*)$/m.exec((await runCommand(statusCommand, '--socket', socket)).out)?.[1]
  const count = (kind: FlowKind, id: number, times: number): void => {
    for (let n = 0; n < times; n++) state.flows.verdicts.add(FLOW_KINDS.indexOf(kind), id)
  }
  assert.equal(await line(), undefined)
  audited = true
  assert.equal(await line(), 'on: 0 queries and 0 packets let pass since the start')
  state.flows.verdicts.keep(['a', 'b', 'c', 'd', 'e'].map((name, i) => ({ id: i + 1, name })))
  count('audited', 1, 1)
  count('audit', 1, 1)
  assert.equal(
    await line(),
    'on: 1 query and 1 packet let pass since the start (a: 1 query and 1 packet)',
  )
  for (const id of [2, 3, 4, 5]) count('audited', id, id)
  audited = false
  assert.match(
    (await line()) ?? '',
    /^off: 15 queries and 1 packet let pass since the start \(e: 5 queries, d: 4 queries, .*, and others\)$/,
  )
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
    assert.equal(/^datapath: +memory has every change, revision \d+, (.*)$/m.exec(out)?.[1], end)
  }
})

test('getCommand shows all faults of a file in one cell', async () => {
  const { out } = await runCommand(getCommand, 'policies', '--socket', socket)
  assert.match(out, /rejected .* p\.yaml:2:3: found x; p\.yaml:2:3: found y\n$/)
})

test('statusCommand fits every width of a terminal, and loses no word', async () => {
  const words = (text: string) => text.split(/\s+/).filter((word) => word !== '')
  const { out: wide } = await runCommandOn(
    mkTerminal(1000),
    statusCommand,
    '--socket',
    socket,
    '--color',
    'never',
  )
  for (const width of [40, 57, 80, 120, 200]) {
    const args = ['--socket', socket, '--color', 'never']
    const { out } = await runCommandOn(mkTerminal(width), statusCommand, ...args)
    for (const line of out.trimEnd().split('\n')) {
      const isOneWord = line.trim().split(/\s+/).length <= 2
      assert.ok(line.length <= width || isOneWord, `${width}: ${line}`)
    }
    assert.deepEqual(words(out), words(wide), `${width}`)
  }
})

test('statusCommand has colours on a terminal, and no broken lines in a pipe', async () => {
  const args = ['--socket', socket]
  const coloured = await runCommandOn(mkTerminal(80), statusCommand, ...args, '--color', 'always')
  assert.ok(coloured.out.startsWith('\u001b[1mhealth:\u001b[0m'))
  assert.match(coloured.out, /31mdegraded/)
  assert.match(coloured.out, /31mfault: p\.yaml:2:3: found x/)
  const { out } = await runCommand(statusCommand, ...args)
  assert.match(out, /^started: +2026-01-02T03:04:05\.000Z$/m)
  assert.match(out, /^mode: +enforce: queries that policy denies are refused$/m)
  assert.match(out, /^policy: +0 policies in force, revision \d+$/m)
  assert.match(out, /^limit pairs: 80 of 100 used, hit 3 times$/m)
  assert.equal((await runCommand(statusCommand, ...args, '--color', 'x')).code, 2)
})
