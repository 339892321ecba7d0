// Many nodes that follow one API server, in one process: for each node a connection and its reflectors, with one owner that keeps nothing.
//   node --import tsx agents.ts ORIGIN FIRST COUNT SPREAD-MS COLLECTIONS
// Each second that had requests prints `second UNIX ANSWERED REFUSED LOST`; a node whose collections were all listed once more prints
// `listed TIMES UNIX-MS`. SIGTERM ends the process.

import { stayAlive, systemClock } from '../../../src/core/clock.ts'
import { RandomPool, systemRandom } from '../../../src/core/random.ts'
import { Connection } from '../../../src/kubernetes/connection/connection.ts'
import { targetsOf } from '../../../src/kubernetes/reflector/collections.ts'
import { countRequests } from '../../../src/kubernetes/reflector/reflector-counts.ts'
import { Reflector } from '../../../src/kubernetes/reflector/reflector.ts'
import { RelistGate } from '../../../src/kubernetes/reflector/relist-gate.ts'
import { accessOf } from './cluster.ts'

const MS_PER_SECOND = 1000
const REFUSED = 429

/** Answered, refused with 429, and lost, by Unix second. */
const seconds = new Map<number, [answered: number, refused: number, lost: number]>()

function count(code: number | 'lost'): void {
  const second = Math.floor(Date.now() / MS_PER_SECOND)
  const counts = seconds.get(second) ?? [0, 0, 0]
  seconds.set(second, counts)
  if (code === 'lost') counts[2]++
  else counts[code === REFUSED ? 1 : 0]++
}

interface Options {
  readonly origin: string
  readonly names: readonly string[]
  readonly spreadMs: number
}

const random = new RandomPool(systemRandom)

function startAgent(node: string, { origin, names, spreadMs }: Options): void {
  const gate = new RelistGate()
  const access = accessOf(origin, 'admintoken')
  const connection = new Connection({ access, clock: systemClock, agent: 'namegate-agent' })
  const api = countRequests(connection, count)
  const targets = targetsOf({ names, node, namespaces: [] })
  const times = targets.map(() => 0)
  let least = 0
  for (const [i, target] of targets.entries()) {
    const reflector = new Reflector({
      target,
      api,
      clock: systemClock,
      random,
      gate,
      spreadMs,
      events: {
        onList() {
          times[i] = (times[i] ?? 0) + 1
          if (Math.min(...times) <= least) return
          least++
          console.log(`listed ${least} ${Date.now()}`)
        },
        onChange: () => undefined,
        onRemove: () => undefined,
        onState: () => undefined,
        onCurrent: () => undefined,
        onMalformed: () => undefined,
      },
    })
    reflector.start()
  }
}

function report(): void {
  const now = Math.floor(Date.now() / MS_PER_SECOND)
  for (const [second, counts] of seconds) {
    if (second >= now) continue
    seconds.delete(second)
    console.log(`second ${second} ${counts.join(' ')}`)
  }
}

const [origin = '', first, total, spread, names = ''] = process.argv.slice(2)
const options = { origin, names: names.split(','), spreadMs: Number(spread) }
for (let i = 0; i < Number(total); i++) {
  startAgent(`node-${Number(first) + i}`, options)
}
systemClock.every(MS_PER_SECOND, report)
stayAlive()
