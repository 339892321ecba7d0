// The rows of the table as tests of one mode: `ID mode: what`, with a test for each transport and name. Many run at once, because most of
// the time is waiting. Rows that change the world for others run last and alone.

import { after, before, describe, it } from 'node:test'
import { exchange, type NameKind } from './exchange.ts'
import type { Transport } from './lab/upstream.ts'
import { World, type Mode } from './lab/world.ts'
import { runsIn, type ExchangeRow, type ScriptRow } from './rows/row.ts'
import { ROWS } from './table.ts'
import { canUseLab } from '../support/labs/lab.ts'

const AT_ONCE = 24
const TRANSPORTS: readonly Transport[] = ['udp', 'tcp']
const NAMES: readonly NameKind[] = ['allowed', 'refused']

export function conformance(mode: Mode): void {
  describe(`conformance, mode ${mode}`, { skip: canUseLab() ?? false }, () => {
    let world: World
    let started: World | undefined
    before(async () => {
      started = await World.start(mode)
      world = started
    })
    after(async () => await started?.close())
    const wire = ROWS.filter((row) => row.kind === 'exchange' || row.kind === 'script').filter(
      (row) => row.kind === 'script' || runsIn(row, mode),
    )
    const placeOf = (row: ExchangeRow | ScriptRow) =>
      row.kind === 'script' ? row.alone : undefined

    describe('together', { concurrency: AT_ONCE }, () => {
      for (const row of wire.filter((each) => placeOf(each) === undefined)) add(row)
    })
    describe('alone', () => {
      for (const place of ['quiet', 'end']) {
        for (const row of wire.filter((each) => placeOf(each) === place)) add(row)
      }
    })

    function add(row: ExchangeRow | ScriptRow): void {
      const name = `${row.id} ${mode}: ${row.what}`
      if (row.kind === 'script') {
        const skip = runsIn(row, mode) ? false : (row.only?.reason ?? false)
        it(name, { skip }, async () => await row.run(world))
        return
      }
      describe(name, { concurrency: AT_ONCE }, () => {
        for (const transport of row.over ?? TRANSPORTS) {
          for (const kind of NAMES) {
            it(`${transport}, ${kind} name`, async () => {
              await exchange(world, row, transport, kind)
            })
          }
        }
      })
    }
  })
}
