// Learning a new address under a known selector, and learning it again, with each datapath, including the commit; and 10,000 addresses of
// one name while 50 endpoints select it. `one by one` commits after every address, like a single answer in its turn; `batches of 32` is the
// case under load.

import { hashedName, lessonOf } from '../support/hashed-name.ts'
import { NOT_CHECKED } from '../../src/names/lesson.ts'
import { runBench, type Figure } from './support/bench.ts'
import { median } from './support/measure.ts'
import {
  firstOf,
  mkEbpf,
  mkMemory,
  mkPolicy,
  mkWorld,
  setAddress,
  type World,
} from './support/world.ts'

const ADDRESSES = 20_000
const ROUNDS = 5

function learn(world: World, from: number, count: number, batch: number): number {
  const octets = new Uint8Array(16)
  const name = hashedName('www.bench.test')
  const [endpoint] = world.ids
  if (endpoint === undefined) throw new Error('Cannot learn: no endpoint')
  const lesson = lessonOf(world.core.names, { endpoint, name, family: 4, octets, ttl: 3600 })
  const began = performance.now()
  for (let i = 0; i < count; i++) {
    setAddress(lesson.octets, from + i)
    lesson.now = world.core.names.tick()
    lesson.guarded = NOT_CHECKED
    world.core.names.learn(lesson)
    if ((i + 1) % batch === 0) world.core.committer.commit()
  }
  world.core.committer.commit()
  return ((performance.now() - began) * 1000) / count
}

function figuresOf(label: string, world: World): readonly Figure[] {
  const timings = {
    one: new Array<number>(),
    batch: new Array<number>(),
    known: new Array<number>(),
  }
  learn(world, 0, ADDRESSES, 32)
  for (let round = 0; round < ROUNDS; round++) {
    const from = ADDRESSES * (1 + round * 2)
    timings.one.push(learn(world, from, ADDRESSES, 1))
    timings.batch.push(learn(world, from + ADDRESSES, ADDRESSES, 32))
    timings.known.push(learn(world, from, ADDRESSES, 32))
  }
  return [
    figure(`${label}: new address, one by one`, timings.one),
    figure(`${label}: new address, batches of 32`, timings.batch),
    figure(`${label}: known address`, timings.known),
  ]
}

function figure(name: string, values: readonly number[]): Figure {
  const spread: [number, number] = [Math.min(...values), Math.max(...values)]
  return { name, value: median(values), unit: 'us', spread }
}

/** Learns 10,000 addresses of one name that 50 endpoints select. */
function manyAddresses(): readonly Figure[] {
  const world = mkWorld(mkMemory(), [mkPolicy('p', ['*.bench.test'])], 50)
  const { allocator, datapath } = world.core
  const identities = allocator.inUse
  const writes = datapath.reports.counters()['map_writes_policy'] ?? 0
  const octets = new Uint8Array(16)
  const name = hashedName('s3.bench.test')
  const lesson = lessonOf(world.core.names, {
    endpoint: firstOf(world),
    name,
    family: 4,
    octets,
    ttl: 5,
  })
  const used = new Set<number>()
  for (let i = 0; i < 10_000; i++) {
    setAddress(octets, i)
    setAddress(lesson.octets, i)
    for (const endpoint of world.ids) {
      lesson.endpoint = endpoint
      lesson.guarded = NOT_CHECKED
      world.core.names.learn(lesson)
    }
    world.core.committer.commit()
    used.add(
      world.core.ipcache.prefixes.wanted[world.core.ipcache.prefixes.find(4, octets, 0, 32)]!,
    )
  }
  const policyWrites = (datapath.reports.counters()['map_writes_policy'] ?? 0) - writes
  return [
    {
      name: '10,000 addresses, 50 endpoints: identities they have',
      value: used.size,
      unit: '',
      limit: 1,
    },
    { name: '… identities allocated', value: allocator.inUse - identities, unit: '', limit: 0 },
    { name: '… policy-map writes', value: policyWrites, unit: '', limit: 0 },
  ]
}

function run(): readonly Figure[] {
  const policies = [mkPolicy('p', ['*.bench.test'])]
  const figures = [...figuresOf('memory', mkWorld(mkMemory(), policies))]
  const ebpf = mkEbpf()
  if (ebpf === undefined) {
    process.stderr.write('learn: eBPF left out: it needs root and npm run build\n')
  } else {
    try {
      figures.push(...figuresOf('eBPF', mkWorld(ebpf.datapath, policies)))
      ebpf.datapath.stop({ leaveEnforcing: false })
    } finally {
      ebpf.remove()
    }
  }
  return [...figures, ...manyAddresses()]
}

await runBench({ name: 'learn', about: 'microseconds to learn an address, commit included', run })
