// The run: a daemon, clients that ask it, and a server that answers it, until enough mutated packets have gone in and out. Hundreds of
// queries are under way at any time. The first difference ends the run.

import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { Answering } from './answering.ts'
import { Asking } from './asking.ts'
import { Check, hex } from './check.ts'
import { Ledger, transportOf, type Pending } from './ledger.ts'
import { entriesOf, leftovers, validate } from './readback.ts'
import { Server53 } from './sockets.ts'
import { Tally } from './tally.ts'
import { startWorld, TIMEOUT_MS, type World } from './world.ts'

export interface RunOptions {
  /** Mutated packets, half of them single-field mutations of answers to live queries. */
  readonly count: number
  readonly seed: number
  /** Runs only this case. */
  readonly only?: number
  readonly onProgress?: (tally: Tally) => void
}

export interface RunResult {
  readonly tally: Tally
  /** Differences, each with the data to repeat it. */
  readonly faults: readonly string[]
  readonly seconds: number
  /** Resident memory in MiB after the first tenth and at the end. */
  readonly memory: readonly [number, number]
}

/** Queries under way at once, and new ones in one turn of the event loop. */
const WINDOW = 320
const PER_TURN = 24
/** The first cases of each period run almost one by one, so that batches of one answer occur, too. */
const PERIOD = 4000
const TRICKLE = 50
/** A query without a reply for so many milliseconds is a fault. */
const STALL_MS = TIMEOUT_MS * 4
/** The longest time until a repetition over TCP, in milliseconds. */
const REPEAT_MS = 5000
/** The number of last packets kept for the report of a crash. */
const TRAIL = 16
/** Time for late messages, in milliseconds. */
const SETTLE_MS = 300

export async function run(options: RunOptions): Promise<RunResult> {
  const server = new Server53()
  await server.start()
  try {
    const world = await startWorld(server.port)
    try {
      return await new Run(options, server, world).run()
    } finally {
      world.stop()
    }
  } finally {
    server.stop()
  }
}

class Run {
  readonly #options: RunOptions
  readonly #world: World
  readonly #ledger = new Ledger()
  readonly #tally = new Tally()
  readonly #asking: Asking
  readonly #faults: string[] = []
  readonly #trail: { readonly what: string; readonly octets: Uint8Array }[] = []
  readonly #entries: readonly string[]
  /** The number of ended queries, and the time when the last one ended. */
  #ended = 0
  #endedAt = performance.now()
  readonly #onCrash = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const last = this.#trail.map(({ what, octets }) => `${what}: ${hex(octets)}`)
    this.#faults.push(`crash: ${text}\nlast packets:\n${last.join('\n')}`)
  }

  constructor(options: RunOptions, server: Server53, world: World) {
    this.#options = options
    this.#world = world
    const { daemon, port } = world
    const shared = {
      seed: options.seed,
      ledger: this.#ledger,
      tally: this.#tally,
      onFault: (fault: string, pending: Pending | undefined, octets: Uint8Array): void =>
        this.#fault(fault, pending, octets),
      onSend: (what: string, octets: Uint8Array): void => this.#note(what, octets),
    }
    const check = new Check({ daemon, ledger: this.#ledger, tally: this.#tally })
    this.#asking = new Asking({ ...shared, daemon, port, check })
    this.#entries = entriesOf(daemon)
    // From here on it handles the server's events.
    void new Answering({ ...shared, server })
  }

  async run(): Promise<RunResult> {
    process.on('uncaughtException', this.#onCrash)
    process.on('unhandledRejection', this.#onCrash)
    const began = performance.now()
    let early = 0
    try {
      await this.#asking.start()
      early = await this.#ask()
      await this.#drain()
      await sleep(SETTLE_MS)
      this.#lookBack()
    } finally {
      this.#asking.stop()
      process.off('uncaughtException', this.#onCrash)
      process.off('unhandledRejection', this.#onCrash)
    }
    const seconds = (performance.now() - began) / 1000
    return { tally: this.#tally, faults: this.#faults, seconds, memory: [early, resident()] }
  }

  /** Asks until enough packets were sent. Returns the resident memory after a tenth. */
  async #ask(): Promise<number> {
    const { count, only, onProgress } = this.#options
    const tally = this.#tally
    let early = 0
    let shown = 0
    if (only !== undefined) {
      this.#asking.ask(only)
      return resident()
    }
    for (let number = 0; this.#faults.length === 0;) {
      if (tally.total >= count && tally.packets.field * 2 >= count) break
      const window = number % PERIOD < TRICKLE ? 2 : WINDOW
      const room = Math.min(PER_TURN, window - this.#ledger.count)
      for (let i = 0; i < room; i++) this.#asking.ask(number++)
      await this.#turn()
      if (early === 0 && tally.total > count / 10) early = resident()
      if (tally.total >= shown + count / 10) {
        shown += count / 10
        onProgress?.(tally)
      }
    }
    return early
  }

  async #drain(): Promise<void> {
    while (this.#ledger.count > 0 && this.#faults.length === 0) await this.#turn()
  }

  async #turn(): Promise<void> {
    await turn()
    this.#asking.endTurn()
    const { ended, count } = this.#ledger
    const now = performance.now()
    if (ended !== this.#ended || count === 0) [this.#ended, this.#endedAt] = [ended, now]
    if (now - this.#endedAt > STALL_MS) {
      const oldest = this.#ledger.oldest
      this.#fault(`${count} queries are without reply`, oldest, new Uint8Array(0))
    }
    const owing = this.#ledger.takeOwing(REPEAT_MS)
    if (owing !== undefined) {
      this.#fault('not asked again over TCP after a mismatch', owing, new Uint8Array(0))
    }
  }

  /** Checks after the last reply that nothing is left and that all counts are right. */
  #lookBack(): void {
    const { daemon } = this.#world
    this.#asking.endTurn()
    const owing = this.#ledger.takeOwing(0)
    if (owing !== undefined) {
      this.#fault('not asked again over TCP after a mismatch', owing, new Uint8Array(0))
    }
    if (this.#faults.length > 0) return
    this.#faults.push(...leftovers(daemon, this.#entries), ...this.#lost())
    try {
      validate(daemon)
    } catch (error) {
      this.#onCrash(error)
    }
  }

  /** Queries that never reached the pipeline, so that the run proves nothing about them. */
  #lost(): readonly string[] {
    const sent = this.#tally.packets.query + this.#tally.plain.queries
    const { queries } = this.#world.daemon.proxy.admission.counters
    return sent === queries ? [] : [`${sent} queries were sent, ${queries} were seen`]
  }

  #note(what: string, octets: Uint8Array): void {
    if (this.#trail.length === TRAIL) this.#trail.shift()
    this.#trail.push({ what, octets })
  }

  #fault(fault: string, pending: Pending | undefined, octets: Uint8Array): void {
    const { seed } = this.#options
    const lines = [fault, `packet: ${hex(octets)}`]
    if (pending !== undefined) {
      const { number, query, accepted, client, read } = pending
      lines.push(
        `query over ${transportOf(client)} from ${client.who}: ${hex(query)}`,
        `asked: ${JSON.stringify(read.labels)} type ${read.type} class ${read.class}`,
        ...pending.history,
        accepted === undefined ? 'no answer was sent' : 'the last one was the answer',
        `${Math.round(performance.now() - pending.begun)} ms: now`,
        `repeat: npm run fuzz -- --seed ${seed} --only ${number}`,
      )
    }
    this.#faults.push(lines.join('\n  '))
  }
}

function resident(): number {
  return Math.round(process.memoryUsage().rss / 2 ** 20)
}
