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
import { DatapathWrapper } from './datapath-wrapper.ts'

/** Commits that come after the start are applied `ms` milliseconds after they were acknowledged. */
class LateDatapath extends DatapathWrapper {
  readonly #ms: number
  #started = false

  constructor(inner: Datapath, ms: number) {
    super(inner)
    this.#ms = ms
    setTimeout(() => (this.#started = true), 500)
  }

  override commit(changes: Changes): CommitResult | undefined {
    if (!this.#started) return this.inner.commit(changes)
    const kept = copyChanges(changes)
    setTimeout(() => this.inner.commit(kept), this.#ms)
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
