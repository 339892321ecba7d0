// The parts of the nftables datapath between `start` and `stop`. `open` takes over what the kernel has from before. A table that differs
// from what this program writes is written anew in one transaction, so that enforcement never pauses.

import { loadConntrack, type ConntrackAddon, type Posix } from '../../native/native.ts'
import type { NetlinkAddon } from '../../native/netfilter/nftables.ts'
import { systemClock, type Clock } from '../../core/clock.ts'
import type { CommitResult, DatapathDump } from '../entries.ts'
import type { RepairedEntry } from '../repair.ts'
import { Applier } from './commit.ts'
import { Adopted } from './tables/adopted.ts'
import { Counters, Events, explain } from './reports.ts'
import { DumpReader } from './tables/dump.ts'
import { Hooks } from './hooks.ts'
import { Intercepted } from './tables/exceptions.ts'
import { Peers } from './peers.ts'
import { restore } from './tables/restore.ts'
import { unavailable } from './netlink/socket.ts'
import { Table } from './tables/table.ts'
import { Watch } from './repair/watch.ts'
import { markWritten } from './rules/written.ts'

export interface NftablesOptions {
  readonly netlink: NetlinkAddon
  readonly posix: Posix
  /** Default: the connection table of this network namespace. */
  readonly conntrack?: ConntrackAddon
  /** Default: the system's. */
  readonly clock?: Clock
  /** Prefixes at most; those unused cost nothing. */
  readonly prefixesMax: number
  /** Policy entries at most, of all endpoints. */
  readonly policyEntriesMax: number
  /** Adopted flows at most; default 65,536. */
  readonly adoptedMax?: number
  /** No other process writes rules in the network namespace while the datapath starts. Default: false. */
  readonly isAlone?: boolean
}

export interface Running {
  readonly table: Table
  readonly applier: Applier
  readonly watch: Watch
  readonly found: Found
  readonly hooks: Hooks
  readonly dump: DumpReader
  readonly adopted: Adopted
  readonly intercepted: Intercepted
  readonly counters: Counters
  readonly events: Events
  readonly peers: Peers
}

const ADOPTED_MAX = 65_536
const TOLD_MS = 900

export interface Listeners {
  /** A batch that the thread had is done. */
  readonly onDone: () => void
  readonly onCommitted: (result: CommitResult) => void
}

export interface Opened {
  readonly running: Running
  /** What was in force before. */
  readonly restored: DatapathDump
}

/** Throws UnavailableError with the remedy. */
export function open(options: NftablesOptions, { onDone, onCommitted }: Listeners): Opened {
  const { netlink, posix, adoptedMax = ADOPTED_MAX, clock = systemClock } = options
  const conntrack = options.conntrack ?? loadConntrack()
  const table = new Table({ ...options, clock, onDone })
  const found = new Found(clock)
  const watch = new Watch({
    netlink,
    posix,
    table,
    clock,
    onFound: (map, describe) => found.add(map, describe),
    onSuspects: () => applier.flush(),
  })
  const restored = takeOver(options, table, watch)
  const peers = new Peers(conntrack)
  const adopted = new Adopted({ table, max: adoptedMax })
  const hooks = new Hooks({
    posix,
    mirror: table.mirror,
    forget: (id, sources) => {
      adopted.forget(id)
      peers.forget(sources)
    },
    begin: (id, generation) => adopted.begin(id, generation),
  })
  const applier = new Applier({ table, hooks, onCommitted })
  const running = {
    table,
    hooks,
    applier,
    watch,
    found,
    dump: new DumpReader(table.socket, table.message),
    adopted,
    peers,
    intercepted: new Intercepted(table),
    counters: new Counters(table),
    events: new Events({
      netlink,
      clock: options.clock ?? systemClock,
      indexOwner: (index) => hooks.ownerOf(index),
      explain: (endpoint, packet) =>
        explain(table, endpoint, hooks.entryOf(endpoint)?.scoped === true, packet),
    }),
  }
  return { running, restored }
}

/** What the table has; it is written anew where another program wrote it. Throws UnavailableError with the remedy. */
function takeOver(options: NftablesOptions, table: Table, watch: Watch): DatapathDump {
  try {
    const { dump, timed, written } = restore(table)
    if (written === 'other') {
      const outcome = table.install(timed)
      if (outcome !== undefined) throw unavailable('install nftables rules', outcome)
      if (options.isAlone !== true) markWritten(table)
    } else table.adopt(written === 'with-reports')
    watch.start(options.isAlone === true)
    return dump
  } catch (error) {
    watch.close()
    table.socket.close()
    throw error
  }
}

/** Changes of other processes until they are reported: the first of each set, and how many. */
class Found {
  readonly #clock: Clock
  readonly #sets = new Map<string, { readonly first: RepairedEntry; count: number }>()
  #next = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(map: string, describe: () => RepairedEntry): void {
    const set = this.#sets.get(map)
    if (set === undefined) this.#sets.set(map, { first: describe(), count: 1 })
    else set.count++
  }

  /** Once a second at most. */
  tell(listener: (first: RepairedEntry, count: number) => void): void {
    if (this.#sets.size === 0 || this.#clock.now() < this.#next) return
    this.#next = this.#clock.now() + TOLD_MS
    for (const { first, count } of this.#sets.values()) listener(first, count)
    this.#sets.clear()
  }
}
