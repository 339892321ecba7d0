// The daemon with a datapath that says "done" at once and does it later: what the first-packet proof is run
// against to show that it can fail. `node --import tsx late-daemon.ts CONFIG DELAY_MS` (0: the real order).

import { systemClock } from '../../src/core/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { Daemon } from '../../src/daemon.ts'
import {
  COMMITTED,
  type Changes,
  type CommitResult,
  type Datapath,
} from '../../src/datapath/datapath.ts'
import { openDatapath } from '../../src/open-datapath.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { copyChanges } from './changes.ts'

/** Commits that come after the start are applied `ms` milliseconds after they were acknowledged. */
class LateDatapath implements Datapath {
  readonly kind
  readonly start
  readonly onCommitted
  readonly setListeners
  readonly setIntercepted
  readonly intercepted
  readonly adopt
  readonly adopted
  readonly setMode
  readonly readMode
  readonly refresh
  readonly onLinkNews
  readonly fence
  readonly fenced
  readonly hookState
  readonly hookKey
  readonly sourceOf
  readonly scanPeers
  readonly drainEvents
  readonly counters
  readonly dump
  readonly stop
  readonly #inner: Datapath
  readonly #ms: number
  #started = false

  constructor(inner: Datapath, ms: number) {
    this.#inner = inner
    this.#ms = ms
    this.kind = inner.kind
    this.start = inner.start.bind(inner)
    this.onCommitted = inner.onCommitted.bind(inner)
    this.setListeners = inner.setListeners.bind(inner)
    this.setIntercepted = inner.setIntercepted.bind(inner)
    this.intercepted = inner.intercepted.bind(inner)
    this.adopt = inner.adopt.bind(inner)
    this.adopted = inner.adopted.bind(inner)
    this.setMode = inner.setMode.bind(inner)
    this.readMode = inner.readMode.bind(inner)
    this.refresh = inner.refresh.bind(inner)
    this.onLinkNews = inner.onLinkNews.bind(inner)
    this.fence = inner.fence.bind(inner)
    this.fenced = inner.fenced.bind(inner)
    this.hookState = inner.hookState.bind(inner)
    this.hookKey = inner.hookKey.bind(inner)
    this.sourceOf = inner.sourceOf.bind(inner)
    this.scanPeers = inner.scanPeers.bind(inner)
    this.drainEvents = inner.drainEvents.bind(inner)
    this.counters = inner.counters.bind(inner)
    this.dump = inner.dump.bind(inner)
    this.stop = inner.stop.bind(inner)
    setTimeout(() => (this.#started = true), 500)
  }

  commit(changes: Changes): CommitResult | undefined {
    if (!this.#started) return this.#inner.commit(changes)
    const kept = copyChanges(changes)
    setTimeout(() => this.#inner.commit(kept), this.#ms)
    return COMMITTED
  }
}

async function main(file: string, delay: number): Promise<void> {
  const config = loadConfig(file)
  const datapath = openDatapath(config, systemClock)
  const late = delay === 0 ? datapath : new LateDatapath(datapath, delay)
  const daemon = new Daemon({ config, log: SILENT, datapath: late })
  process.on('SIGTERM', () => {
    daemon.stop()
    process.exit(0)
  })
  await daemon.start()
  console.log('ready')
  setInterval(() => undefined, 1 << 30)
}

const [file = '', delay = '0'] = process.argv.slice(2)
await main(file, Number(delay))
