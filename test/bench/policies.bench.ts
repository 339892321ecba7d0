// 10,000 policy files with 100,000 distinct names and 500 endpoints, 300 names on one of them and 200 on each of the others.
// Reads and compiles them, and puts them in force over the memory datapath. Then files change one after the other, each from the
// moment when the file is read until all is in force, as in the daemon. The look at all files that finds the changed one is
// measured separately.

import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configFromObject } from '../../src/config/load.ts'
import { Daemon } from '../../src/daemon/daemon.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { runBench, type Figure } from './support/bench.ts'
import { HandClock } from './support/hand-clock.ts'
import { LoopDelay, residentOctets } from './support/process.ts'
import { mkMemory } from './support/world.ts'

const POLICIES = 10_000
const NAMES = 10
const OWN = 30
const ENDPOINTS = 500
const CHANGES = 40
/** Longer than a change must be quiet. */
const SETTLED_MS = 150

function policyText(i: number, version: number): string {
  const names = Array.from(
    { length: NAMES },
    (_, n) => `*.n${n}.p${i}.v${n === 0 ? version : 0}.test`,
  )
  const list = names.map((name) => `{ matchPattern: "${name}" }`).join(', ')
  const app = i < OWN ? 0 : 1 + (i % (ENDPOINTS - 1))
  return `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p${i} }
spec:
  endpointSelector: { matchLabels: { app: app-${app} } }
  egress:
  - toFQDNs: [ ${list} ]
    toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]
  - toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ ${list} ] } } ]
`
}

function endpointsText(): string {
  const lines = Array.from({ length: ENDPOINTS }, (_, i) => {
    const address = `10.1.${i >> 8}.${i & 255}`
    return `- { name: e${i}, addresses: [${address}], labels: { app: app-${i}, pod: p${i} } }\n`
  })
  return `endpoints:\n${lines.join('')}`
}

class Subject {
  readonly clock = new HandClock()
  readonly daemon: Daemon
  readonly #policies: string

  constructor(folder: string) {
    this.#policies = join(folder, 'policies')
    mkdirSync(this.#policies)
    for (let i = 0; i < POLICIES; i++) this.write(i, 0)
    const endpoints = join(folder, 'endpoints.yaml')
    writeFileSync(endpoints, endpointsText())
    const config = configFromObject({
      listeners: [{ address: '127.0.0.1', port: 0, mode: 'explicit' }],
      policies: { paths: [this.#policies] },
      endpoints: { files: [endpoints] },
      upstreams: { servers: ['127.0.0.1:9'] },
    })
    this.daemon = new Daemon({ config, log: SILENT, datapath: mkMemory(), clock: this.clock })
  }

  write(i: number, version: number): void {
    writeFileSync(join(this.#policies, `p${i}.yaml`), policyText(i, version))
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
    this.daemon.sources.start()
    return [
      { name: 'files read', value: (read - began) / 1000, unit: 's' },
      { name: 'and put in force', value: (ended - read) / 1000, unit: 's' },
      { name: 'load, in all', value: (ended - began) / 1000, unit: 's', limit: 5 },
    ]
  }

  /** Milliseconds of each turn of a look that finds no change. */
  async look(): Promise<readonly number[]> {
    return await this.clock.fire()
  }

  /** Changes a file. Returns the milliseconds from reading it until all is in force. */
  async change(i: number, version: number): Promise<number> {
    const { policies, transition } = this.daemon
    this.write(i, version)
    await this.clock.fire()
    this.clock.skip(SETTLED_MS)
    const { revision } = policies
    await this.clock.fire()
    while (transition.pending) await new Promise((resolve) => setImmediate(resolve))
    const took = performance.now() - lastRead
    if (policies.revision !== revision + 1) throw new Error('Cannot measure: nothing changed')
    return took
  }
}

/** The time when a file was last read. */
let lastRead = NaN

/** Records when the sources read files: by their descriptors, unlike the bench itself. */
function watchReading(): void {
  const read = fs.readFileSync
  Object.assign(fs, {
    readFileSync: (...args: Parameters<typeof read>) => {
      if (typeof args[0] === 'number') lastRead = performance.now()
      return read(...args)
    },
  })
  syncBuiltinESMExports()
}

function spreadOf(name: string, times: number[], limit?: number): Figure {
  times.sort((a, b) => a - b)
  const [least = NaN, value = NaN, most = NaN] = [times[0], times[times.length >> 1], times.at(-1)]
  const figure = { name, value, unit: 'ms', spread: [least, most] } as const
  return limit === undefined ? figure : { ...figure, limit }
}

async function run(): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-bench-'))
  try {
    const subject = new Subject(folder)
    const figures = [...(await subject.load())]
    const resident = await residentOctets()
    figures.push({ name: 'resident', value: resident / 2 ** 20, unit: 'MB', limit: 600 })
    watchReading()
    const looks: (readonly number[])[] = []
    for (let n = 0; n < CHANGES; n++) looks.push(await subject.look())
    const delay = new LoopDelay()
    delay.start()
    const changes: number[] = []
    for (let n = 0; n < CHANGES; n++)
      changes.push(await subject.change((n * 251) % POLICIES, n + 1))
    const worst = Math.max(...delay.stop().late)
    const whole = looks.map((turns) => turns.reduce((sum, ms) => sum + ms, 0))
    figures.push(spreadOf('look at files of which none changed', whole))
    const longest = looks.map((turns) => Math.max(...turns))
    figures.push(spreadOf('longest turn of such a look', longest))
    figures.push(spreadOf('one file changed: from reading it to in force', changes, 20))
    figures.push({ name: 'event-loop delay meanwhile, worst', value: worst, unit: 'ms' })
    subject.daemon.sources.stop()
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await runBench({ name: 'policies', about: '10,000 policies, 100,000 names, 500 endpoints', run })
