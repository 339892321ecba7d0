import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  expiryOf,
  formatKept,
  parseKept,
  toApiResource,
  type ApiResource,
  type Boot,
} from '../../src/sources/api-resource.ts'
import { parseResourceObject } from '../../src/endpoints/resources.ts'
import { FakeClock } from '../support/fake-clock.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const TTL_MS = 10 * HOUR_MS
const WALL = 1_700_000_000_000

/** The clocks of a process that starts `up` milliseconds after the boot. */
function machine(id: string, up: number, wallMs: number): { clock: FakeClock; boot: Boot } {
  const clock = new FakeClock(0, wallMs)
  return { clock, boot: { id, seconds: () => (up + clock.now()) / 1000 } }
}

function mkResource(clock: FakeClock, ttl: number | undefined): ApiResource {
  const { resource } = parseResourceObject('db', { addresses: ['192.0.2.1'] }, 'test')
  return toApiResource(resource ?? assert.fail('it is one'), ttl, clock)
}

/** The milliseconds left of a resource with a TTL of ten hours that was recorded an hour after it was set. */
function leftIn(
  jumpMs: number,
  { id, up, wallMs }: { readonly id: string; readonly up: number; readonly wallMs: number },
): number | 'over' {
  const { clock, boot } = machine('a1', DAY_MS, WALL)
  const resource = mkResource(clock, TTL_MS)
  clock.offsetMs = jumpMs
  clock.advance(HOUR_MS)
  const kept: unknown = JSON.parse(formatKept(resource, clock, boot))
  const next = machine(id, up, wallMs)
  const read = parseKept(kept, next.clock, next.boot)
  return read.kind === 'ok' ? read.resource.due - next.clock.now() : 'over'
}

test('parseKept gives a resource the rest of its TTL, whatever the wall clock does, and never more after a reboot', () => {
  const later = DAY_MS + 2 * HOUR_MS
  const at = WALL + 2 * HOUR_MS
  const rows: readonly (readonly [
    why: string,
    jumpMs: number,
    next: { readonly id: string; readonly up: number; readonly wallMs: number },
    left: number | 'over',
  ])[] = [
    ['no jump', 0, { id: 'a1', up: later, wallMs: at }, 8 * HOUR_MS],
    ['forward, while down', 0, { id: 'a1', up: later, wallMs: at + DAY_MS }, 8 * HOUR_MS],
    ['back, while down', 0, { id: 'a1', up: later, wallMs: at - DAY_MS }, 8 * HOUR_MS],
    ['forward, and right again', DAY_MS, { id: 'a1', up: later, wallMs: at }, 8 * HOUR_MS],
    ['back, and right again', -DAY_MS, { id: 'a1', up: later, wallMs: at }, 8 * HOUR_MS],
    ['too late', 0, { id: 'a1', up: later + 8 * HOUR_MS, wallMs: WALL }, 'over'],
    ['a reboot', 0, { id: 'b2', up: 1000, wallMs: at }, 8 * HOUR_MS],
    ['a reboot and back', 0, { id: 'b2', up: 1000, wallMs: at - DAY_MS }, TTL_MS],
    ['a reboot and forward', 0, { id: 'b2', up: 1000, wallMs: at + DAY_MS }, 'over'],
    ['an unknown boot', 0, { id: '00', up: later, wallMs: at }, 8 * HOUR_MS],
  ]
  for (const [why, jumpMs, next, left] of rows) assert.equal(leftIn(jumpMs, next), left, why)
})

test('parseKept reads records of versions with one clock', () => {
  const { clock, boot } = machine('a1', DAY_MS, WALL)
  const kept = { name: 'db', addresses: ['192.0.2.1'], ttl: '10h' }
  const expires = new Date(WALL + HOUR_MS).toISOString()
  const read = parseKept({ ...kept, expires }, clock, boot)
  assert.equal(read.kind === 'ok' && read.resource.due, HOUR_MS)
})

test('expiryOf follows the wall clock, and is undefined without an end', () => {
  const clock = new FakeClock(0, WALL)
  const resource = mkResource(clock, TTL_MS)
  clock.offsetMs = -DAY_MS
  clock.advance(HOUR_MS)
  assert.equal(expiryOf(resource, clock), WALL + TTL_MS - DAY_MS)
  assert.equal(expiryOf(mkResource(clock, undefined), clock), undefined)
})
