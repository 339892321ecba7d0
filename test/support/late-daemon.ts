// The daemon with a datapath that says "done" at once and does it later: what the first-packet proof is run
// against to show that it can fail. `node --import tsx late-daemon.ts CONFIG DELAY_MS` (0: the real order).

import { systemClock } from '../../src/core/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { Daemon } from '../../src/daemon.ts'
import { COMMITTED, type Changes, type Datapath } from '../../src/datapath/datapath.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'
import { openDatapath } from '../../src/open-datapath.ts'

const [file = '', delay = '0'] = process.argv.slice(2)
const config = loadConfig(file)
const datapath = openDatapath(config, systemClock)
const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: console.error,
  error: console.error,
  limited: () => undefined,
  flush: () => undefined,
}
const daemon = new Daemon({ config, log: quiet, datapath: late(datapath, Number(delay)) })
process.on('SIGTERM', () => {
  daemon.stop()
  process.exit(0)
})
await daemon.start()
console.log('ready')
setInterval(() => undefined, 1 << 30)

/** Commits that come after the start are applied `ms` milliseconds after they were acknowledged. */
function late(inner: Datapath, ms: number): Datapath {
  if (ms === 0) return inner
  let started = false
  setTimeout(() => (started = true), 500)
  return new Proxy(inner, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (key === 'commit') {
        return (changes: Changes) => {
          if (!started) return target.commit(changes)
          const kept = {
            ...changes,
            prefixUpserts: copy(changes.prefixUpserts),
            prefixRemovals: copy(changes.prefixRemovals),
          }
          setTimeout(() => target.commit(kept), ms)
          return COMMITTED
        }
      }
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function copy(batch: PrefixBatch): PrefixBatch {
  const kept = new PrefixBatch(Math.max(1, batch.count))
  for (let i = 0; i < batch.count; i++) {
    kept.add(
      batch.family(i),
      batch.octets(i),
      0,
      batch.length(i),
      batch.identity(i),
      batch.addressClass(i),
    )
  }
  return kept
}
