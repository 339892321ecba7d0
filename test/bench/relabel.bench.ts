// 100,000 known names get one more label when a selector is added that matches all of them: the time until all are in force, and the delay of
// the event loop meanwhile.

import { Housekeeping } from '../../src/reconcile/housekeeping.ts'
import { systemClock } from '../../src/core/clock.ts'
import { hashedName, teach } from '../support/hashed-name.ts'
import { runBench, type Figure } from './support/bench.ts'
import { LoopDelay } from './support/process.ts'
import { mkMemory, mkPolicy, mkWorld, setAddress } from './support/world.ts'

const NAMES = 100_000

async function run(): Promise<readonly Figure[]> {
  const world = mkWorld(mkMemory(), [mkPolicy('p', ['**.bench.test'])])
  const { core, policies, endpoints, transition } = world
  const [endpoint] = world.ids
  if (endpoint === undefined) throw new Error('Cannot learn: no endpoint')
  const octets = new Uint8Array(16)
  for (let i = 0; i < NAMES; i++) {
    setAddress(octets, i)
    const name = hashedName(`n${i}.host.bench.test`)
    teach(core.names, { endpoint, name, family: 4, octets, ttl: 3600 })
    if (i % 64 === 0) core.committer.commit()
  }
  core.committer.commit()
  globalThis.gc?.()
  const housekeeping = new Housekeeping({
    core,
    transition,
    onEvent: () => undefined,
    onHooks: () => undefined,
  })
  const delay = new LoopDelay()
  delay.start()
  await pause(50)
  const began = performance.now()
  const both = [mkPolicy('p', ['**.bench.test']), mkPolicy('q', ['*.host.bench.test'])]
  policies.setPolicies(both, endpoints.registry)
  housekeeping.beginTransition()
  while (transition.pending) await pause(1)
  const took = performance.now() - began
  await pause(5)
  const delays = delay.stop().late
  const relabelled = countWith(world.core, 'fqdn:*.host.bench.test')
  return [
    { name: 'names whose address carries both labels', value: relabelled, unit: '' },
    { name: 'until all are in force', value: took, unit: 'ms', limit: 1000 },
    { name: 'event-loop delay, worst', value: Math.max(...delays), unit: 'ms', limit: 10 },
  ]
}

function countWith(core: ReturnType<typeof mkWorld>['core'], label: string): number {
  const { prefixes } = core.ipcache
  let count = 0
  for (let row = 1; row <= prefixes.slots.high; row++) {
    const set = core.allocator.setOf(prefixes.identityOf(row))
    const applied = prefixes.applied[row] === prefixes.wanted[row]
    if (set !== undefined && applied && core.labelSets.format(set).includes(label)) count++
  }
  return count
}

async function pause(milliseconds: number): Promise<void> {
  await new Promise<void>((resolve) => systemClock.after(milliseconds, resolve))
}

await runBench({ name: 'relabel', about: '100,000 known names, one selector added', run })
