// A wall clock that jumps by a day, while a node runs and while no node runs. Within one boot nothing changes, because times come from the
// kernel's clock. After a reboot, learned entries never live longer than before. Over the real files.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readState } from '../../src/state/read-state.ts'
import { stampOf } from '../../src/state/stamp.ts'
import { StateStore } from '../../src/state/state-store.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const DAY_MS = 86_400_000
const WALL = 1_700_000_000_000
const TTL = 300
const GRACE = 60
/** The time from the first node's answer to the second node's start. */
const DOWN_MS = 100_000
const ADDRESS = '192.0.2.1'
const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

interface Machine {
  readonly disk: MemoryDisk
  /** `now` counts from the boot. */
  readonly clock: FakeClock
  /** The octets of the boot's id. */
  readonly boot: number
  /** Seconds since the boot when the clock showed 0. The default is 0. */
  readonly bootAtZero?: number
}

function start({ disk, clock, boot: octet, bootAtZero = 0 }: Machine): Node {
  const boot = { seconds: () => bootAtZero + clock.now() / 1000 }
  const bootId = new Uint8Array(16).fill(octet)
  const read = readState({ disk, pairsMax: 100, now: { ...stampOf(clock, boot), bootId } })
  const onFault = ({ message }: { readonly message: string }): never => assert.fail(message)
  const store = new StateStore({ disk, clock, boot, bootId, read, onFault })
  const kept = { saved: read.state, sink: store, bootAtZero }
  const node = new Node({ clock, kept, graceSeconds: GRACE })
  node.policies.setPolicies(mkPolicies(WILD), node.endpoints.registry)
  // An endpoint without a hook, because an endpoint on an interface is new after a reboot.
  node.setEndpoints([{ ...mkEndpoint('a', ['10.0.0.1']), hook: { kind: 'none' } }])
  node.takeOver('grace')
  return node
}

/** Learns on a machine that is up for 1000 s, and writes the state. */
async function learned(clock: FakeClock, jumpMs = 0): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const node = start({ disk, clock, boot: 1 })
  node.learn(node.endpoint('a').id, 'one.x', [ADDRESS], TTL)
  clock.offsetMs += jumpMs
  clock.advance(1000)
  await disk.settle()
  return disk.copy()
}

/** Seconds of TTL that are left, or undefined for an unknown name. */
function left({ core: { names } }: Node): number | undefined {
  for (let pair = 1; pair <= names.entries.slots.high; pair++) {
    if (names.entries.isUsed(pair)) return names.entries.liveUntil[pair]! - names.tick()
  }
  return undefined
}

function up(milliseconds: number, wallMs: number): FakeClock {
  return new FakeClock(milliseconds, wallMs - milliseconds)
}

/** The seconds left of a node that starts again in the same boot. Recorded times are a little late, so that records are rare. */
async function leftWithoutJump(): Promise<number> {
  const disk = await learned(up(1_000_000, WALL))
  const node = start({ disk, clock: up(1_000_000 + DOWN_MS, WALL + DOWN_MS), boot: 1 })
  return left(node) ?? assert.fail('it is known')
}

for (const [jump, jumpMs] of [
  ['forward', DAY_MS],
  ['back', -DAY_MS],
] as const) {
  test(`A node forgets at the end of a TTL, whatever the wall clock does: a day ${jump}`, () => {
    const clock = up(1_000_000, WALL)
    const node = start({ disk: new MemoryDisk(), clock, boot: 1 })
    node.learn(node.endpoint('a').id, 'one.x', [ADDRESS], TTL)
    const expire = (milliseconds: number): void => {
      clock.advance(milliseconds)
      while (!node.core.expiry.step(1000)) continue
      node.core.committer.commit()
    }
    clock.offsetMs = jumpMs
    expire((TTL - 2) * 1000)
    assert.equal(node.verdict('a', ADDRESS), 'allow')
    assert.equal(left(node), 2)
    clock.offsetMs = -jumpMs
    expire((GRACE + 4) * 1000)
    assert.equal(left(node), undefined)
  })

  test(`A node that starts again in the same boot knows the same: a day ${jump} while it was down`, async () => {
    const disk = await learned(up(1_000_000, WALL))
    const node = start({ disk, clock: up(1_000_000 + DOWN_MS, WALL + DOWN_MS + jumpMs), boot: 1 })
    assert.equal(left(node), await leftWithoutJump())
    assert.equal(node.verdict('a', ADDRESS), 'allow')
  })

  test(`A node that starts again in the same boot knows the same: a day ${jump} before it was written`, async () => {
    const disk = await learned(up(1_000_000, WALL), jumpMs)
    const node = start({ disk, clock: up(1_000_000 + DOWN_MS, WALL + DOWN_MS), boot: 1 })
    assert.equal(left(node), await leftWithoutJump())
  })
}

test('A node that starts after a reboot gives learned entries the rest of their time', async () => {
  const disk = await learned(up(1_000_000, WALL))
  const node = start({ disk, clock: up(50_000, WALL + DOWN_MS), boot: 2 })
  const seconds = left(node) ?? assert.fail('it is known')
  const control = await leftWithoutJump()
  assert.ok(seconds <= control && seconds > control - 3, `${seconds} instead of ${control}`)
})

test('A node that starts after a reboot prolongs nothing when the clock was set back', async () => {
  const disk = await learned(up(1_000_000, WALL))
  const node = start({ disk, clock: up(50_000, WALL + DOWN_MS - DAY_MS), boot: 2 })
  const seconds = left(node) ?? assert.fail('it is known')
  const control = (await leftWithoutJump()) + DOWN_MS / 1000
  assert.ok(seconds <= control, `${seconds} of ${control} s left`)
})

test('A node that starts after a reboot has no live entries when the clock was set forward', async () => {
  const disk = await learned(up(1_000_000, WALL))
  const node = start({ disk, clock: up(50_000, WALL + DOWN_MS + DAY_MS), boot: 2 })
  while (!node.core.expiry.step(1000)) continue
  node.core.committer.commit()
  assert.equal(left(node), undefined)
})

test('A node that starts again and again forgets an entry when a node without a restart would', async () => {
  const [ttl, every, up0] = [5, 6.4, 1000]
  let disk = new MemoryDisk()
  for (let at = 0; at < ttl + GRACE + 3 * every; at += every) {
    const clock = new FakeClock(0, WALL + at * 1000)
    const node = start({ disk, clock, boot: 1, bootAtZero: up0 + at })
    if (at === 0) node.learn(node.endpoint('a').id, 'one.x', [ADDRESS], ttl)
    while (!node.core.expiry.step(1000)) continue
    if (at < GRACE) assert.ok((left(node) ?? -GRACE) > -GRACE, `known after ${at} s`)
    // Two more seconds for rounding and for late times in records.
    if (at > ttl + GRACE + 2) assert.equal(left(node), undefined, `forgotten after ${at} s`)
    for (let i = 0; i < 3; i++) {
      clock.advance(1000)
      await disk.settle()
    }
    disk = disk.copy()
  }
})
