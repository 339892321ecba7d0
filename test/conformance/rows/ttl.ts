// docs/spec/correctness 1.9: RFC 2181 section 8 and RFC 8767, lifetimes.

import assert from 'node:assert/strict'
import { answerTo } from '../lab/upstream.ts'
import type { World } from '../lab/world.ts'
import { ask } from './build.ts'
import type { Row } from './row.ts'
import { a, cname, mkMessage, type MkRecord } from '../../support/messages.ts'

const DAY_S = 86_400
/** Time that a busy machine can take between the answer and the check. */
const SLACK_S = 60
const CHAIN = 'chain.ok.test'

interface Lifetime {
  readonly id: string
  readonly what: string
  readonly records: (name: readonly string[], address: string) => readonly MkRecord[]
  /** Seconds that the address is live. */
  readonly seconds: number
  readonly note?: string
}

const LIFETIMES: readonly Lifetime[] = [
  {
    id: 'L1',
    what: 'TTL 0 passes, and the address is open for the grace',
    records: (name, address) => [a(name, address, 0)],
    seconds: 0,
  },
  ...[0x8000_0000, 0xffff_ffff].map((ttl) => ({
    id: 'L2',
    what: `TTL ${ttl} counts as 0`,
    note: 'docs/spec/semantics 4: a TTL with the top bit set counts as 0',
    records: (name: readonly string[], address: string) => [a(name, address, ttl)],
    seconds: 0,
  })),
  {
    id: 'L2',
    what: 'TTL 2147483647 is lowered to dns.max-ttl, a day',
    records: (name, address) => [a(name, address, 0x7fff_ffff)],
    seconds: DAY_S,
  },
  {
    id: 'L3',
    what: 'the lower of two TTLs of one address counts',
    records: (name, address) => [a(name, address, 900), a(name, address, 5000)],
    seconds: 900,
  },
  {
    id: 'L3',
    what: 'the lowest TTL of a chain counts',
    records: (name, address) => [cname(name, CHAIN, 700), a(CHAIN, address, 5000)],
    seconds: 700,
  },
]

export const RFC_2181: readonly Row[] = [
  ...LIFETIMES.map(({ id, what, records, seconds, note }): Row => ({
    kind: 'script',
    id,
    what,
    ...(note === undefined ? {} : { note }),
    run: async (world) => await lives(world, records, seconds),
  })),
  {
    kind: 'tests',
    id: 'L1',
    what: 'the grace, its end, and min-ttl',
    tests: [
      ['test/scenarios/scenarios.test.ts', 'ttl-games.scn'],
      ['test/scenarios/scenarios.test.ts', 'min-ttl.scn'],
      ['test/scenarios/scenarios.test.ts', 'lifetime.scn'],
    ],
  },
  {
    kind: 'left-out',
    id: 'L4',
    what: 'serve stale',
    reason: 'namegate has no cache: every answer is the server’s',
  },
]

async function lives(world: World, records: Lifetime['records'], seconds: number): Promise<void> {
  for (const transport of ['udp', 'tcp'] as const) {
    const name = world.name()
    const address = world.address()
    const answers = records(name, address)
    world.upstream.on(name, (asked) => asked.send(answerTo(asked, { answers })))
    const before = Date.now()
    const got = await world.ask(transport, mkMessage(ask(name)))
    const [asked] = world.upstream.asked(name).items
    assert.ok(asked)
    const want = Buffer.from(answerTo(asked, { answers })).subarray(2)
    assert.equal(got.subarray(2).toString('hex'), want.toString('hex'), 'the answer is unchanged')
    const live = (expiryOf(await world.admin('/v1/names'), name.join('.'), address) - before) / 1000
    assert.ok(live >= seconds - 2 && live <= seconds + SLACK_S, `live for ${live} s`)
  }
}

/** When the address of the name stops to be live, in milliseconds. */
function expiryOf(names: unknown, name: string, address: string): number {
  const rows = names as { name: string; addresses: { address: string; expires: string }[] }[]
  const row = rows.find((each) => each.name === name)
  const found = row?.addresses.find((each) => each.address === address)
  assert.ok(found, `${name} has ${address}`)
  return Date.parse(found.expires)
}
