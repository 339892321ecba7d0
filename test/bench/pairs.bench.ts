// A million entries, each with another name (27 octets) and address: resident memory over the empty state, then the event loop while 5,000
// new entries a second are learned, as many expire, and garbage is collected. Measured in the process that holds them, with the given
// datapath: in memory, or with eBPF, where the entries are in the kernel.

import { Housekeeping } from '../../src/reconcile/housekeeping.ts'
import { systemClock } from '../../src/core/clock.ts'
import { hashedName, teach } from '../support/hashed-name.ts'
import { runBench, type Figure } from './support/bench.ts'
import { quantile } from './support/measure.ts'
import { LoopDelay, residentOctets, type LoopDelays } from './support/process.ts'
import {
  firstOf,
  mkMemory,
  mkPolicy,
  mkWorld,
  PAIRS,
  setAddress,
  type World,
} from './support/world.ts'

const KEPT = PAIRS - 60_000
const NEW_PER_SECOND = 5_000
const SECONDS = 20
const TICK_MS = 10
/** New entries expire after this time, so that as many are removed as are learned. */
const SHORT_TTL = 1

class Feeder {
  readonly #world: World
  readonly #octets = new Uint8Array(16)
  #next = 0

  constructor(world: World) {
    this.#world = world
  }

  feed(count: number, ttl: number): void {
    const { core } = this.#world
    const endpoint = firstOf(this.#world)
    for (let n = 0; n < count; n++) {
      const i = this.#next++
      setAddress(this.#octets, i)
      const name = hashedName(`host-${i}.apps.bench.test`)
      if (teach(core.names, { endpoint, name, family: 4, octets: this.#octets, ttl }) === 0)
        throw new Error('full')
      if (i % 32 === 0) core.committer.commit()
    }
    core.committer.commit()
  }
}

async function run(): Promise<readonly Figure[]> {
  const world = mkWorld(mkMemory(), [mkPolicy('p', ['**.bench.test'])])
  const empty = await residentOctets()
  const feeder = new Feeder(world)
  feeder.feed(KEPT, 86_400)
  const { entries } = world.core.names
  const held = entries.slots.used
  const grown = ((await residentOctets()) - empty) * (PAIRS / held)
  const housekeeping = new Housekeeping({
    core: world.core,
    transition: world.transition,
    onEvent: () => undefined,
    onHooks: () => undefined,
  })
  housekeeping.start()
  const { late, own } = await delaysWhile(feeder)
  housekeeping.stop()
  return [
    { name: 'pairs held', value: held, unit: '' },
    { name: 'memory for 1,000,000 pairs', value: grown / 1e6, unit: 'MB', limit: 300 },
    { name: 'event-loop delay, p50', value: quantile(late, 0.5), unit: 'ms' },
    { name: 'event-loop delay, p99.9', value: quantile(late, 0.999), unit: 'ms', limit: 5 },
    { name: 'event-loop delay, worst', value: Math.max(...late), unit: 'ms', limit: 15 },
    {
      name: '… without waiting for a CPU, p99.9',
      value: quantile(own, 0.999),
      unit: 'ms',
      limit: 5,
    },
    { name: '… without waiting for a CPU, worst', value: Math.max(...own), unit: 'ms', limit: 15 },
  ]
}

/** The loop's delays while new entries are learned evenly, old ones expire, and garbage is collected. */
async function delaysWhile(feeder: Feeder): Promise<LoopDelays> {
  const delay = new LoopDelay()
  const feeding = setInterval(
    () => feeder.feed((NEW_PER_SECOND * TICK_MS) / 1000, SHORT_TTL),
    TICK_MS,
  )
  delay.start()
  await new Promise<void>((resolve) => systemClock.after(SECONDS * 1000, resolve))
  clearInterval(feeding)
  return delay.stop()
}

await runBench({ name: 'pairs', about: 'a million pairs: memory and event loop', run })
