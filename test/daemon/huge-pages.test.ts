// The tables of a busy daemon move into huge pages, where the kernel shows it: /proc/self/smaps_rollup.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { int32Column } from '../../src/core/tables/columns.ts'
import { HugePages } from '../../src/daemon/huge-pages.ts'
import { loadPosix } from '../../src/native/native.ts'
import { FakeClock } from '../support/fake-clock.ts'

const AREA_ROWS = (2 << 20) / Int32Array.BYTES_PER_ELEMENT
/**
 * Together more than 32 MiB, which malloc(3) always takes fresh from the kernel. Below, it can return memory that another test of this
 * process has touched.
 */
const AREAS = 20
const skip = whyNot()

function whyNot(): string | false {
  const file = '/sys/kernel/mm/transparent_hugepage/enabled'
  try {
    return readFileSync(file, 'utf8').includes('[never]') && 'the kernel has no huge pages'
  } catch {
    return 'the kernel has no huge pages'
  }
}

/** The octets that this process has in huge pages. */
function hugeOctets(): number {
  const [, kilobytes] = /^AnonHugePages:\s+(\d+) kB/m.exec(
    readFileSync('/proc/self/smaps_rollup', 'utf8'),
  )!
  return Number(kilobytes) * 1024
}

function touch(column: Int32Array, areas: number): void {
  for (let row = 0; row < areas * AREA_ROWS; row += 1024) column[row] = row
}

for (const { why, touched, entries, least, most } of [
  { why: 'a busy daemon moves what it has touched', touched: 8, entries: 1e6, least: 7, most: 8 },
  { why: 'untouched memory stays away', touched: 0, entries: 1e6, least: 0, most: 0 },
  { why: 'a daemon with few entries moves nothing', touched: 8, entries: 100, least: 0, most: 0 },
]) {
  test(`HugePages: ${why}`, { skip }, () => {
    const clock = new FakeClock()
    const column = int32Column(AREAS * AREA_ROWS)
    touch(column, touched)
    const before = hugeOctets()
    const pages = new HugePages({
      clock,
      posix: loadPosix(),
      entries: () => entries,
      // Not largeColumns(): other test files of this process have tables, too.
      columns: () => [new Uint8Array(column.buffer)],
    })
    pages.start()
    clock.advance(10_000)
    const moved = (hugeOctets() - before) / (2 << 20)
    assert.ok(moved >= least && moved <= most, `${moved} areas moved`)
    for (let row = 0; row < touched * AREA_ROWS; row += 1024) assert.equal(column[row], row)
    pages.stop()
  })
}
