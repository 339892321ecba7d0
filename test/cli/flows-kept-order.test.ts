// `namegate flows` prints flows by the time of their first flow. On disk they are in the order of their reports, and a report of repeated
// flows is up to an hour later than the first of them. In memory a packet comes later than queries of its time, because its report does.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AdminServer } from '../../src/admin/server.ts'
import { systemClock } from '../../src/core/clock.ts'
import { FlowTally, type Counted } from '../../src/flows/flow-tally.ts'
import { FlowRing } from '../../src/flows/record/flow-ring.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { namegate, objectIn, runCommand } from '../support/nodes/command.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'
import { Node, prefixOf } from '../support/nodes/node.ts'

const BEGAN = Date.parse('2026-01-01T00:00:00Z')
const SECOND = 1000
/** The flows of five hours, as the daemon writes them: names that are asked at different intervals. */
const SECONDS = 5 * 3600
const INTERVALS = [3, 7, 61, 600, 4000]

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** The lines on disk. */
function written(): readonly string[] {
  const ring = new FlowRing()
  const names: string[] = []
  const tally = new FlowTally(ring, (number) => `"kind":"denied","name":"${names[number] ?? ''}"`)
  const lines: string[] = []
  const take = ({ text, count, first, last }: Counted): boolean => {
    const times = `"time":"${timeText(first)}","last":"${timeText(last)}"`
    lines.push(`{${times},"count":${count},"verdict":"deny",${text}}`)
    return true
  }
  for (let second = 1; second <= SECONDS; second++) {
    for (const interval of INTERVALS) {
      if (second % interval !== 0) continue
      const name = `every-${interval}-${Math.floor(second / 60)}.test`
      names.push(name)
      ring.addDns(BEGAN + second * SECOND, mkDnsFlow(name, { kind: 'denied' }))
      tally.add(ring.count - 1, second * SECOND)
    }
    tally.drain(second * SECOND, take)
  }
  tally.drain(SECONDS * SECOND, take, true)
  return lines
}

const lines = written()
async function* read(): AsyncIterable<string> {
  for (const line of lines) yield `${line}\n`
  await Promise.resolve()
}

const folder = mkdtempSync(join(tmpdir(), 'namegate-flows-'))
const socket = join(folder, 'admin.sock')
const { state } = mkAdmin(new Node(), { clock: systemClock, keptFlows: { read } })
const server = new AdminServer({ state, socket, onError: (error) => assert.ifError(error) })
await server.start()
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

test('flows --kept prints flows by the time of their first flow, and all of them', async () => {
  const times = lines.map((line) => String(objectIn(line)['time']))
  assert.notDeepEqual(times, times.toSorted(), 'the lines on disk are not in this order')
  const { out } = await runCommand(namegate('flows'), '--socket', socket, '--kept', '-o', 'json')
  const printed = out.trimEnd().split('\n')
  assert.deepEqual(
    printed.map((line) => String(objectIn(line)['time'])),
    times.toSorted(),
  )
  assert.deepEqual(printed.toSorted(), lines.toSorted())
})

test('flows prints packets in memory among the queries by time, and a query before the packets of its moment', async () => {
  const packet = {
    endpoint: 0,
    family: 4,
    peer: prefixOf('198.18.0.9').octets,
    identity: 9,
  } as const
  const addPacket = (ms: number, port: number): void =>
    state.flows.addPacket(BEGAN + ms, {
      ...{ ...packet, kind: 'drop', protocol: 6, port, names: [], rule: 0, reason: 'policy' },
    })
  const addQuery = (ms: number, name: string): void =>
    state.flows.addDns(BEGAN + ms, mkDnsFlow(name, { kind: 'denied' }))
  addQuery(1000, 'a.test')
  addQuery(2000, 'b.test')
  addQuery(3000, 'c.test')
  addPacket(1000, 1)
  addPacket(1500, 2)
  addPacket(2000, 3)
  for (const last of [[], ['--last', '6']]) {
    const words = ['--socket', socket, '-o', 'json', ...last]
    const { out } = await runCommand(namegate('flows'), ...words)
    const rows = out.trimEnd().split('\n').slice(-6).map(objectIn)
    assert.deepEqual(
      rows.map((row) => row['name'] ?? row['port']),
      ['a.test', 1, 2, 'b.test', 3, 'c.test'],
    )
  }
})
