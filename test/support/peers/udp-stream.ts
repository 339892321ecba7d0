// Compiles and runs test/support/programs/udp-stream.c: a steady stream of datagrams between two hosts of a lab. Some must arrive, the
// others must not.

import { setTimeout as sleep } from 'node:timers/promises'
import { compiled } from './compiled.ts'
import { objectIn } from '../nodes/command.ts'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'

/** Waits for datagrams on their way. */
const PATIENCE_MS = 300

export interface StreamTarget {
  readonly address: string
  readonly port: number
  readonly isAllowed: boolean
}

export interface StreamCount {
  readonly seconds: number
  readonly sent: number
  /** How many of the datagrams that must arrive did not. */
  readonly lost: number
  /** The first of them, as ranges of numbers, and the last number that arrived. */
  readonly gaps: string
  /** Datagrams that must not arrive: sent, and arrived. */
  readonly forbidden: number
  readonly passed: number
}

export interface StreamOptions {
  readonly from: Host
  readonly to: Host
  readonly targets: readonly StreamTarget[]
  /** Datagrams a second that must arrive. A tenth as many must not. */
  readonly rate: number
  /** Source ports for each target. */
  readonly sockets: number
}

export class UdpStream {
  readonly #sender: LabProcess
  readonly #receiver: LabProcess
  readonly #began = performance.now()

  private constructor(sender: LabProcess, receiver: LabProcess) {
    this.#sender = sender
    this.#receiver = receiver
  }

  static async start({ from, to, targets, rate, sockets }: StreamOptions): Promise<UdpStream> {
    const program = compiled('udp-stream')
    const ports = [...new Set(targets.map(({ port }) => String(port)))]
    const receiver = to.start(program, ['receive', ...ports])
    await receiver.untilOutput(/^ready$/m)
    const words = targets.flatMap(({ address, port, isAllowed }) => {
      return [address, String(port), isAllowed ? 'a' : 'f']
    })
    const sender = from.start(program, ['send', String(rate), String(sockets), ...words])
    await sender.untilOutput(/^ready$/m)
    return new UdpStream(sender, receiver)
  }

  /** Ends the stream, and returns its counts. */
  async stop(): Promise<StreamCount> {
    const seconds = (performance.now() - this.#began) / 1000
    await this.#sender.stop()
    await sleep(PATIENCE_MS)
    await this.#receiver.stop()
    const [out, back] = [this.#sender, this.#receiver].map(({ stdout }) => resultIn(stdout))
    const sent = numberOf(out, 'sent')
    return {
      seconds,
      sent,
      lost: sent - numberOf(back, 'received'),
      gaps: `${String(back?.['gaps'])} last ${numberOf(back, 'last')}`.trim(),
      forbidden: numberOf(out, 'forbidden'),
      passed: numberOf(back, 'passed'),
    }
  }
}

function resultIn(stdout: string): Readonly<Record<string, unknown>> {
  return objectIn(stdout.trim().split('\n').at(-1) ?? '')
}

function numberOf(fields: Readonly<Record<string, unknown>> | undefined, key: string): number {
  const value = fields?.[key]
  if (typeof value !== 'number') throw new Error(`no number ${key}`)
  return value
}
