// The load of cilium#47128: 200 queries a second, TTL 5 s, 10,000 names and 10,000 new ones every hour, under one wildcard. Here time runs
// 20 times faster: 4,000 a second, TTL 1 s (times are in whole seconds), 56 new names a second. Once the names reach their bound, memory
// must not grow.

import { firstOf, mkMemory, mkPolicy, mkWorld, setAddress } from '../bench/support/world.ts'
import { Random } from '../support/models/random.ts'
import { hashedName, teach } from '../support/hashed-name.ts'
import { runSoak } from './support/soak.ts'

const FASTER = 20
const NAMES = 10_000
const ANSWERS = 200 * FASTER
const NEW = (NAMES * FASTER) / 3600
const NAMES_MAX = 10_000
/** Growth of memory a minute that garbage collection explains. */
const SLOPE_MAX_MB = 6

const world = mkWorld(mkMemory(), [mkPolicy('p', ['**.bench.test'])], 1, {
  'names-per-wildcard': NAMES_MAX,
})
const endpoint = firstOf(world)
const random = new Random(1)
const octets = new Uint8Array(16)
let newest = NAMES
let owed = 0

await runSoak({
  name: 'churn',
  about: `${ANSWERS} answers a second, TTL 1 s, ${NAMES} names and ${NEW.toFixed(0)} new a second, one wildcard`,
  world,
  answersPerSecond: ANSWERS,
  answer() {
    owed += NEW / ANSWERS
    const isNew = owed >= 1
    if (isNew) owed--
    const i = isNew ? newest++ : newest - 1 - random.below(NAMES)
    setAddress(octets, i)
    const name = hashedName(`host-${i}.apps.bench.test`)
    teach(world.core.names, { endpoint, name, family: 4, octets, ttl: 1 })
  },
  figures({ seconds, residentMb, pairs }) {
    const third = Math.floor(seconds.length / 3)
    const least = (values: readonly number[]): number => Math.min(...values)
    const grown = least(residentMb.slice(-third)) - least(residentMb.slice(third, 2 * third))
    return [
      {
        name: 'names over their bound',
        value: Math.max(0, Math.max(...pairs) - NAMES_MAX),
        unit: '',
        limit: 0,
      },
      {
        name: 'memory, least of the last third over least of the second',
        value: grown,
        unit: 'MB',
        limit: SLOPE_MAX_MB,
      },
    ]
  },
})
