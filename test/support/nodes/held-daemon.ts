// The daemon over its configured datapath with a delayed writer, for the proofs of the hold:
// `node --import tsx held-daemon.ts CONFIG held|unheld MS,MS,...`. Once the daemon prints `ready`, each commit reaches the datapath MS
// milliseconds after the call. Each SIGUSR2 selects the next number, and the daemon prints `stalled MS`. With `unheld`, the datapath
// reports commits as in force at once, so that no answer waits. At its end, the daemon prints its counters of answers as JSON.

import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../../src/config/load.ts'
import { Daemon } from '../../../src/daemon/daemon.ts'
import { COMMITTED, type Changes, type CommitResult } from '../../../src/datapath/entries.ts'
import { type Datapath } from '../../../src/datapath/datapath.ts'
import { openDatapath } from '../../../src/daemon/open-datapath.ts'
import { SILENT } from '../../../src/telemetry/silent.ts'
import { copyChanges } from '../changes.ts'
import { DatapathWrapper } from '../models/datapath-wrapper.ts'

class HeldWriter extends DatapathWrapper {
  readonly #isHeld: boolean
  /** The delay of the writer before each commit. */
  stalledMs = 0
  /** Commits that were reported as in force, and are not. */
  readonly #queue: Changes[] = []
  #isBusy = false
  #listener: (result: CommitResult) => void = () => undefined

  constructor(inner: Datapath, isHeld: boolean) {
    super(inner)
    this.#isHeld = isHeld
    inner.onCommitted((result) => this.#ended(result))
  }

  override onCommitted(listener: (result: CommitResult) => void): void {
    this.#listener = listener
  }

  override commit(changes: Changes): CommitResult | undefined {
    if (this.stalledMs === 0) return this.inner.commit(changes)
    const kept = copyChanges(changes)
    setTimeout(() => this.#write(kept), this.stalledMs)
    return this.#isHeld ? undefined : COMMITTED
  }

  #write(changes: Changes): void {
    if (this.#isHeld) {
      const result = this.inner.commit(changes)
      if (result !== undefined) this.#listener(result)
      return
    }
    this.#queue.push(changes)
    this.#next()
  }

  #next(): void {
    while (!this.#isBusy) {
      const changes = this.#queue.shift()
      if (changes === undefined) return
      this.#isBusy = this.inner.commit(changes) === undefined
    }
  }

  #ended(result: CommitResult): void {
    if (this.stalledMs === 0 || this.#isHeld) return this.#listener(result)
    this.#isBusy = false
    this.#next()
  }
}

async function main(file: string, isHeld: boolean, stalls: number[]): Promise<void> {
  const config = loadConfig(file)
  const writer = new HeldWriter(openDatapath(config), isHeld)
  const daemon = new Daemon({ config, log: SILENT, datapath: writer })
  process.on('SIGTERM', () => {
    const { admission, settlement, releases } = daemon.proxy
    const counters = { ...admission.counters, ...settlement.counters }
    console.log(JSON.stringify({ ...releases.counters, ...counters }))
    daemon.stop()
    process.exit(0)
  })
  await daemon.start()
  const isFenced = (): boolean =>
    [...daemon.endpoints.registry].every(({ id }) => writer.hooks.stateOf(id).kind === 'attached')
  while (!isFenced() || daemon.core.committer.isUnderWay) await sleep(20)
  const stall = (): void => {
    writer.stalledMs = stalls.shift() ?? 0
    console.log(`stalled ${writer.stalledMs}`)
  }
  process.on('SIGUSR2', stall)
  stall()
  console.log('ready')
  setInterval(() => undefined, 1 << 30)
}

const [file = '', how = '', stalls = ''] = process.argv.slice(2)
await main(file, how === 'held', stalls.split(',').map(Number))
