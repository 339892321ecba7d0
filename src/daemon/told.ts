// What fails while the daemon runs, and is well again, as lines of the log: servers that do not answer, a kernel that refuses
// entries, deny rules that select nothing. Looked at once a second.

import type { EmptyDenies } from '../enforcement/empty-denies.ts'
import type { Clock } from '../core/clock.ts'
import type { Committer } from '../datapath/committer.ts'
import type { ServerPool } from '../proxy/upstream/server-pool.ts'
import { Condition } from '../telemetry/condition.ts'
import type { Log } from '../telemetry/log.ts'

export interface ToldOptions {
  readonly log: Log
  readonly clock: Clock
  readonly committer: Committer
  readonly pool: ServerPool
  readonly emptyDenies: EmptyDenies
}

const DOWN =
  'upstream does not answer: the others are asked, and it is asked again until it answers; see that it runs and that this host reaches it'
const ALL_DOWN =
  'upstream does not answer: no other does, and names cannot be asked; see that it runs and that this host reaches it'
const REFUSED =
  'the kernel refuses entries: answers with these addresses are held out, and the entries are tried again every second; when its maps are full, set the limit higher and run namegate datapath detach before the next start'
/** What the kernel says when a map or set is full. */
const FULL: ReadonlySet<string> = new Set(['E2BIG', 'ENOSPC', 'ENOMEM', 'ENFILE'])
const LIMITS = {
  prefix: 'limits.pairs',
  policy: 'limits.policy-entries',
  endpoint: 'limits.endpoints',
} as const

export class Told {
  readonly #of: ToldOptions
  readonly #servers: readonly Condition[]
  readonly #kernel = new Condition()

  constructor(options: ToldOptions) {
    this.#of = options
    this.#servers = options.pool.servers.map(() => new Condition())
  }

  look(): void {
    const now = this.#of.clock.now()
    this.#of.emptyDenies.look()
    for (let i = 0; i < this.#servers.length; i++) this.#lookAtServer(i, now)
    // While the datapath is at work, what it will refuse is not known.
    if (!this.#of.committer.isUnderWay) this.#lookAtKernel(now)
  }

  #lookAtServer(i: number, now: number): void {
    const { log, pool } = this.#of
    const [server, condition] = [pool.servers[i], this.#servers[i]]
    const news = condition?.look(now, pool.isDown(i))
    if (news === undefined || server === undefined) return
    const fields = { server: server.address, port: server.port }
    if (news === 'is well') {
      log.info({ ...fields, milliseconds: condition?.lasted(now) }, 'upstream answers again')
    } else {
      log.warn(fields, pool.servers.every((_, other) => pool.isDown(other)) ? ALL_DOWN : DOWN)
    }
  }

  #lookAtKernel(now: number): void {
    const { log, committer } = this.#of
    const { refused: count, lastRefused } = committer
    const news = this.#kernel.look(now, count > 0)
    if (news === 'is well') {
      log.info({ milliseconds: this.#kernel.lasted(now) }, 'the kernel takes all entries again')
    } else if (news === 'fails' && lastRefused !== undefined) {
      const { section, code } = lastRefused
      const limit = FULL.has(code) ? LIMITS[section] : undefined
      log.warn({ count, limit, reason: code }, REFUSED)
    }
  }
}
