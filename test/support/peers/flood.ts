// Compiles and runs test/support/programs/flood.c: a client that asks at a steady rate, with any answers, and a server that is slow
// on purpose. It runs in a network namespace of its own, so that only this test changes the kernel's counters.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { objectIn } from '../nodes/command.ts'
import { compiled } from './compiled.ts'
import { DaemonFolder, PROGRAM, type FolderOptions } from '../nodes/daemon-process.ts'
import { Lab, type Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { readExposition } from '../nodes/metrics.ts'

const SERVER = '127.0.0.53'
const PORT = 53
const DAEMON = '127.0.0.1'
const METRICS_PORT = 9465
/** A query without an answer so long after the end of the load is lost. */
const PATIENCE_S = 8

/** Answers with one RCODE; times in microseconds. */
export interface Outcome {
  readonly count: number
  readonly within50ms: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface Asked {
  readonly sent: number
  readonly lost: number
  readonly wrong: number
  readonly noerror: Outcome
  readonly servfail: Outcome
  readonly other: Outcome
}

export interface AskOptions {
  /** The client's address. */
  readonly from: string
  /** First letter of the names: the server answers `s` late, `m` never, others at once. */
  readonly letter: string
  readonly rate: number
  readonly seconds: number
}

/** The daemon, the slow server and clients, on the loopback of one namespace. */
export class FloodLab {
  readonly folder: DaemonFolder
  readonly #lab = new Lab()
  readonly #host: Host
  readonly #program = compiled('flood')
  #daemon: LabProcess | undefined

  constructor(options: FolderOptions) {
    this.folder = new DaemonFolder({
      ...options,
      config: {
        listeners: `[{ address: ${DAEMON}, port: ${PORT} }]`,
        upstreams: `{ servers: ["${SERVER}:${PORT}"] }`,
        metrics: `{ address: ${DAEMON}, port: ${METRICS_PORT} }`,
        ...options.config,
      },
    })
    this.#host = this.#lab.addHost('flood')
  }

  get daemon(): LabProcess {
    if (this.#daemon === undefined) throw new Error('it was not started')
    return this.#daemon
  }

  async start(delayMs: number): Promise<void> {
    const args = ['serve', SERVER, String(PORT), String(delayMs)]
    await this.#host.start(this.#program, args).untilOutput(/^ready$/m)
    const { path: cwd } = this.folder
    const args2 = ['run', '--config', join(cwd, 'namegate.yaml')]
    this.#daemon = this.#host.start(PROGRAM, args2, { cwd })
    await this.#daemon.untilOutput(/namegate serves/, 20_000)
  }

  async ask({ from, letter, rate, seconds }: AskOptions): Promise<Asked> {
    const numbers = [rate, seconds, PATIENCE_S].map(String)
    const args = ['ask', DAEMON, String(PORT), from, letter, ...numbers]
    const limitMs = (seconds + PATIENCE_S + 20) * 1000
    const { code, stdout, stderr } = await this.#host.run(this.#program, args, { limitMs })
    if (code !== 0) throw new Error(`flood ask ended with ${code}: ${stderr}`)
    return readAsked(stdout)
  }

  /** Datagrams that sockets of the namespace dropped because their buffer was full. */
  kernelDrops(): number {
    const lines = readFileSync(`/proc/${this.daemon.pid}/net/snmp`, 'utf8').split('\n')
    const [names = [], values = []] = lines
      .filter((line) => line.startsWith('Udp:'))
      .map((line) => line.split(' '))
    return Number(values[names.indexOf('RcvbufErrors')])
  }

  /** A metric of the daemon by its exposed name with labels. */
  async metric(key: string): Promise<number> {
    const { stdout } = await this.#host.run('curl', ['-s', `${DAEMON}:${METRICS_PORT}/metrics`])
    const value = readExposition(stdout).samples.get(key)
    if (value === undefined) throw new Error(`no metric is called ${key}`)
    return value
  }

  /** Resident memory of the daemon, in octets. */
  residentOctets(): number {
    const status = readFileSync(`/proc/${this.daemon.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
  }

  async close(): Promise<void> {
    await this.#lab.close()
    this.folder.remove()
  }
}

function readAsked(text: string): Asked {
  const all = objectIn(text)
  const [sent, lost, wrong] = [numberOf(all, 'sent'), numberOf(all, 'lost'), numberOf(all, 'wrong')]
  const outcome = (name: string): Outcome => {
    const of = fieldsOf(all[name])
    const read = (key: string): number => numberOf(of, key)
    return {
      count: read('count'),
      within50ms: read('within50ms'),
      p50: read('p50'),
      p99: read('p99'),
      max: read('max'),
    }
  }
  const [noerror, servfail, other] = [outcome('noerror'), outcome('servfail'), outcome('other')]
  return { sent, lost, wrong, noerror, servfail, other }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return objectIn(JSON.stringify(value))
}

function numberOf(fields: Readonly<Record<string, unknown>>, key: string): number {
  const value = fields[key]
  if (typeof value !== 'number') throw new Error(`no number ${key}`)
  return value
}
