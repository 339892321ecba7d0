// Reads 100,000 external resources from one file and puts them in force over the memory datapath. Then one of them changes in the file, each
// time from the look that reads it until all is in force. Then one is added and removed by the admin API, until all is in force and the state
// folder has it. Two in a hundred are prefixes, the others single addresses.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configFromObject } from '../../src/config/load.ts'
import type { ResourceOutcome } from '../../src/enforcement/resource-control.ts'
import { systemBootClock, systemClock } from '../../src/core/clock.ts'
import { Daemon } from '../../src/daemon/daemon.ts'
import type { ResourceKeeper } from '../../src/sources/api-resources.ts'
import { ResourceShards } from '../../src/state/resource-shards.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { runBench, type Figure } from './support/bench.ts'
import { HandClock } from './support/hand-clock.ts'
import { LoopDelay, residentOctets } from './support/process.ts'
import { mkMemory } from './support/world.ts'

const RESOURCES = 100_000
const CHANGES = 40
/** Longer than a change must be quiet. */
const SETTLED_MS = 150

function resourceText(i: number, version = 0): string {
  const [high, middle, low] = [i >> 16, (i >> 8) & 255, i & 255]
  const address =
    i % 50 === 0 ? `"2001:db8:${high}${middle}:${low}::/64"` : `10.${high}.${middle}.${low}`
  return `  - name: vm-${i}
    addresses: [${address}]
    labels: { app: app-${(i % 97) + version}, k8s:io.kubernetes.pod.namespace: prod }
`
}

class Subject {
  readonly clock = new HandClock()
  /** Milliseconds of each turn of looks that read the file. */
  readonly turns: number[] = []
  readonly daemon: Daemon
  readonly #file: string
  readonly #texts = Array.from({ length: RESOURCES }, (_, i) => resourceText(i))

  constructor(folder: string) {
    this.#file = join(folder, 'resources.yaml')
    const policy = join(folder, 'policy.yaml')
    const endpoints = join(folder, 'endpoints.yaml')
    writeFileSync(policy, POLICY)
    writeFileSync(endpoints, 'endpoints: [ { name: a, addresses: [192.0.2.1] } ]\n')
    this.#write()
    const config = configFromObject({
      listeners: [{ address: '127.0.0.1', port: 0, mode: 'explicit' }],
      policies: { paths: [policy] },
      endpoints: { files: [endpoints] },
      resources: { files: [this.#file] },
      upstreams: { servers: ['127.0.0.1:9'] },
    })
    const kept = new ResourceShards({
      folder: join(folder, 'kept'),
      clock: systemClock,
      onDamage: fail,
      onFault: fail,
    })
    const resourceKeeper: ResourceKeeper = {
      boot: { ...systemBootClock, id: '1' },
      read: () => kept.read(),
      keep: async (name, line) => await kept.keep(name, line),
    }
    const datapath = mkMemory()
    this.daemon = new Daemon({ config, log: SILENT, datapath, clock: this.clock, resourceKeeper })
  }

  /** The start, without its sockets. */
  async load(): Promise<readonly Figure[]> {
    const { sources, transition } = this.daemon
    const began = performance.now()
    sources.load()
    const read = performance.now()
    sources.apply()
    await transition.finished()
    const ended = performance.now()
    sources.start()
    return [
      { name: 'file read', value: (read - began) / 1000, unit: 's' },
      { name: 'and put in force', value: (ended - read) / 1000, unit: 's' },
      { name: 'load, in all', value: (ended - began) / 1000, unit: 's', limit: 2 },
    ]
  }

  /** Changes one resource in the file. Returns the milliseconds from the look that reads it until all is in force. */
  async edit(i: number, version: number): Promise<number> {
    this.#texts[i] = resourceText(i, version)
    return await this.#look()
  }

  /** The same with one more resource at the file's beginning. */
  async insert(i: number): Promise<number> {
    this.#texts.unshift(resourceText(RESOURCES + i))
    return await this.#look()
  }

  /** Adds one resource and removes it again. Returns the milliseconds of each until it is in force and kept. */
  async put(i: number): Promise<readonly number[]> {
    const { apiResources } = this.daemon.sources
    const addresses = [i % 2 === 0 ? `172.16.0.${i}` : `10.${i % 3}.${i}.0/24`]
    const body = { addresses, labels: { 'k8s:app': `own-${i}` } }
    const times: number[] = []
    for (const change of [() => apiResources.set('own', body), () => apiResources.remove('own')]) {
      const began = performance.now()
      await this.#done(change())
      times.push(performance.now() - began)
    }
    return times
  }

  async #look(): Promise<number> {
    this.#write()
    await this.clock.fire()
    this.clock.skip(SETTLED_MS)
    const { committer } = this.daemon.core
    const { revision } = committer
    const began = performance.now()
    this.turns.push(...(await this.clock.fire()))
    await this.#realized()
    const took = performance.now() - began
    if (committer.revision === revision) fail('nothing changed')
    return took
  }

  async #done(outcome: ResourceOutcome): Promise<void> {
    if (outcome.kind !== 'ok') fail(outcome.kind)
    else await Promise.all([outcome.kept, this.#realized()])
  }

  async #realized(): Promise<void> {
    while (this.daemon.transition.pending) await new Promise((resolve) => setImmediate(resolve))
  }

  #write(): void {
    writeFileSync(this.#file, `resources:\n${this.#texts.join('')}`)
  }
}

const POLICY = `apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: web }
spec:
  endpointSelector: {}
  egress: [ { toEndpoints: [ { matchLabels: { app: app-7 } } ] } ]
`

function fail(reason: string): never {
  throw new Error(`Cannot measure: ${reason}`)
}

function spreadOf(name: string, times: number[]): Figure {
  times.sort((a, b) => a - b)
  const [least = NaN, value = NaN, most = NaN] = [times[0], times[times.length >> 1], times.at(-1)]
  return { name, value, unit: 'ms', spread: [least, most], limit: 20 }
}

async function run(): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-bench-'))
  try {
    const subject = new Subject(folder)
    const figures = [...(await subject.load())]
    const resident = await residentOctets()
    figures.push({ name: 'resident', value: resident / 2 ** 20, unit: 'MB' })
    const [edits, inserts, puts]: [number[], number[], number[]] = [[], [], []]
    for (let n = 0; n < CHANGES; n++) edits.push(await subject.edit((n * 2503) % RESOURCES, n + 1))
    for (let n = 0; n < 10; n++) inserts.push(await subject.insert(n))
    figures.push(spreadOf('one changed in the file: from that look to in force', edits))
    figures.push(spreadOf('one more at its beginning', inserts))
    figures.push({ name: 'longest turn of those', value: Math.max(...subject.turns), unit: 'ms' })
    const delay = new LoopDelay()
    delay.start()
    for (let n = 0; n < CHANGES; n++) puts.push(...(await subject.put(n)))
    figures.push(spreadOf('PUT or DELETE: in force and kept', puts))
    const worst = Math.max(...delay.stop().late)
    figures.push({ name: 'event-loop delay meanwhile, worst', value: worst, unit: 'ms' })
    subject.daemon.sources.stop()
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await runBench({ name: 'resources', about: `${RESOURCES} external resources`, run })
