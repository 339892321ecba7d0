// Running has the parts of the nftables datapath that exist between `start` and `stop`. `open` takes over what the kernel has
// from an earlier process. If the table differs from what this program writes, `open` replaces it in one transaction, so that
// enforcement never pauses.

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
import { unavailable } from './netlink/socket.ts'
import { Table } from './tables/table.ts'
import { Watch } from './repair/watch.ts'
import { findWritten, markWritten } from './rules/written.ts'
import { COMMENT } from './rules/install.ts'
import { KEPT, shapeOf, TIMED } from './rules/layout.ts'
import { eachElement, readTable } from './netlink/read-elements.ts'
import type { Element } from './tables/mirror.ts'
import { PrefixBatch } from '../prefix-batch.ts'

export interface NftablesOptions {
  readonly netlink: NetlinkAddon
  readonly posix: Posix
  /** Default: the connection table of this network namespace. */
  readonly conntrack?: ConntrackAddon
  /** Default: the system's clock. */
  readonly clock?: Clock
  /** Most prefixes. Unused room costs nothing. */
  readonly prefixesMax: number
  /** Most policy entries, of all endpoints together. */
  readonly policyEntriesMax: number
  /** Most adopted connections; default 65,536. */
  readonly adoptedMax?: number
  /** True if no other process writes rules in the network namespace while the datapath starts. Default: false. */
  readonly isAlone?: boolean
  /** True if processes of this network namespace get an answer when a packet is refused (rules/form.ts). Default: false. */
  readonly rejects?: boolean
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
const REPORT_MS = 900

export interface Listeners {
  /** Called when the thread has finished a batch. */
  readonly onDone: () => void
  readonly onCommitted: (result: CommitResult) => void
}

export interface Opened {
  readonly running: Running
  /** The entries that were in force before. */
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
    dump: new DumpReader(table),
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

/**
 * Returns the table's entries, and replaces the table if this program did not write it. Throws UnavailableError with the remedy.
 */
function takeOver(options: NftablesOptions, table: Table, watch: Watch): DatapathDump {
  try {
    const { dump, timed, written } = restore(table)
    if (written === 'other') {
      const outcome = table.install(timed)
      if (outcome !== undefined) throw unavailable('install nftables rules', outcome)
      if (options.isAlone !== true) markWritten(table)
    } else table.adopt(written)
    watch.start(options.isAlone === true)
    return dump
  } catch (error) {
    watch.close()
    table.socket.close()
    throw error
  }
}

/** What an earlier process left in the kernel. */
interface Restored {
  readonly dump: DatapathDump
  /** Elements that packets added, with their remaining times. */
  readonly timed: ReadonlyMap<string, readonly Element[]>
  /** The form in which the existing table can stay. `other`: it cannot stay. */
  readonly written: ReturnType<typeof findWritten>
}

/**
 * Restores each set as it is, and restores prefixes and policies into their tables. A table that this same program wrote stays in
 * place. Any other table of the same layout is read and later replaced. A table of another layout is replaced without reading it.
 */
function restore(table: Table): Restored {
  const { mirror, prefixes, policies } = table
  const timed = new Map<string, Element[]>()
  const comment = readTable(table)
  if (comment === undefined || Buffer.compare(comment, COMMENT) !== 0) {
    const prefixes = new PrefixBatch()
    return {
      dump: { mode: 'enforce', prefixes, policies: [], endpoints: [] },
      timed,
      written: 'other',
    }
  }
  for (const name of KEPT) {
    eachElement(table, name, (element) => mirror.restore(name, element))
  }
  policies.restore()
  const dump = new DumpReader(table).read()
  let fits = true
  for (let i = 0; i < dump.prefixes.count; i++) {
    const [identity, addressClass] = [dump.prefixes.identity(i), dump.prefixes.addressClass(i)]
    fits = prefixes.set(dump.prefixes, i, identity, addressClass) && fits
  }
  const written = fits ? findWritten(table) : 'other'
  for (const name of TIMED) {
    const isOfPackets = shapeOf(name).dynamic === true
    if (isOfPackets && written !== 'other') continue
    const elements: Element[] = []
    eachElement(table, name, (element) => elements.push(element))
    if (isOfPackets) timed.set(name, elements)
    else table.timed.note('add', name, elements)
  }
  return { dump, timed, written }
}

/** Collects changes of other processes until they are reported: the first change of each set, and how many there were. */
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

  /** Reports at most once a second. */
  report(listener: (first: RepairedEntry, count: number) => void): void {
    if (this.#sets.size === 0 || this.#clock.now() < this.#next) return
    this.#next = this.#clock.now() + REPORT_MS
    for (const { first, count } of this.#sets.values()) listener(first, count)
    this.#sets.clear()
  }
}
