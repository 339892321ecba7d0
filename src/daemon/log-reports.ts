// Writes the daemon's own log lines: endpoints and their hooks, the mode, repairs, and conditions that begin and end, such as a server
// that does not answer. The daemon calls these functions when something happens, and it calls ConditionReports once a second.

import type { OnRemoved } from '../admin/standing-socket.ts'
import type { AdoptionControl } from '../enforcement/adoption-control.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { EmptyDenies } from '../enforcement/empty-denies.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../core/clock.ts'
import { formatAddress } from '../core/ip.ts'
import type { Committer } from '../datapath/committer.ts'
import type { Mode } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { RepairedEntry } from '../datapath/repair.ts'
import type { Endpoint, EndpointRegistry } from '../endpoints/registry.ts'
import { errnoName } from '../native/native.ts'
import type { ServerPool } from '../proxy/upstream/server-pool.ts'
import { Condition } from '../telemetry/condition.ts'
import type { Log } from '../telemetry/log.ts'
import type { PutBack } from '../telemetry/put-back.ts'

const SECOND_MS = 1000

/** Reports how many connections from before enforcement stay allowed. Called when adoption has ended. */
export function reportAdopted(
  log: Log,
  { counters, faults }: AdoptionControl,
  { kind, adoptExistingMs }: Config['datapath'],
): void {
  const fields = { count: counters.flows, milliseconds: adoptExistingMs }
  const [errno] = faults
  if (errno !== undefined) {
    const message = 'open flows cannot be listed: only TCP is spared, by its segments'
    log.warn({ ...fields, reason: errnoName(errno) }, message)
  } else if (counters.endpoints > 0 && kind !== 'memory') {
    log.info(fields, 'flows that are older than enforcement pass for a while')
  }
}

interface HookReportParts {
  readonly datapath: Datapath
  readonly endpoints: { readonly registry: EndpointRegistry }
}

/** Reports endpoints whose hook is attached now, and warns of endpoints whose hook failed. */
export function reportHooks(
  log: Log,
  { datapath, endpoints: { registry } }: HookReportParts,
  endpoints: Iterable<number>,
): void {
  for (const id of endpoints) {
    const endpoint: Endpoint | undefined = registry.byNumber(id)
    if (endpoint === undefined || endpoint.hook.kind === 'none') continue
    const hook = datapath.hooks.stateOf(endpoint.id)
    const fields = { endpoint: endpoint.name, hook }
    if (hook.kind === 'attached') log.info(fields, 'endpoint is fenced')
    else if (hook.kind === 'waiting')
      log.warn(fields, 'endpoint has no interface or cgroup: enforcement begins when it appears')
    else if (hook.kind !== 'unfenced') log.warn(fields, 'endpoint is not fenced')
  }
}

export function reportMode(log: Log, mode: Mode): void {
  if (mode === 'enforce') log.info({ mode }, 'mode changed')
  else log.warn({ mode }, 'mode changed: policy denies nothing')
}

/** Reports an audit setting that was made at run time, with the endpoints that it is for now. Undefined: the setting was removed. */
export function reportAudit(log: Log, endpoints: readonly string[], on: boolean | undefined): void {
  log.info({ endpoints }, on === undefined ? 'audit reset' : on ? 'audit set on' : 'audit set off')
}

/** Reports that another program changed `count` entries of the kernel, and that the repair restored them. */
export function reportRepaired(log: Log, first: RepairedEntry, count: number): void {
  const { map, key, want, have } = first
  const fault = `${map} ${key}: found ${have ?? 'nothing'}, expected ${want ?? 'nothing'}`
  log.warn({ fault, count }, 'another program changed entries in the kernel: repaired')
}

/** Reports sources that have become silent. An empty list means that all sources are reachable again. */
export function reportSilence(log: Log, silent: readonly string[], then: string): void {
  if (silent.length === 0) log.info({}, 'all sources are heard again')
  else log.warn({ name: silent.join(', '), reason: `sources.then is ${then}` }, SILENCE)
}

const SILENCE = 'sources are silent for longer than sources.max-age'

/** Reports peers of deny rules that select nothing. An empty list means that all peers select something again. */
export function reportEmptyDenies(log: Log, texts: readonly string[]): void {
  const [fault] = texts
  const count = texts.length
  if (fault === undefined) log.info({ count }, 'all peers of deny rules select something again')
  else
    log.warn({ fault, count }, 'peers of deny rules select nothing: what they name is not denied')
}

/** Reports how many times an address received a fallback identity since the last report. */
export function reportFallbacks(log: Log, count: number): void {
  const message =
    'identities of answers are used up: addresses get fewer labels than their names have'
  log.limited('identity-budget', { count }, message)
}

interface ExpiredUseParts {
  readonly core: CoreState
  readonly endpoints: { readonly registry: EndpointRegistry }
  readonly flows: FlowRing
  readonly clock: Clock
}

/** Records that a client connected to an address after the TTL of the address' name, and logs one such use a minute. */
export function reportExpiredUse(
  { core, endpoints, flows, clock }: ExpiredUseParts,
  log: Log,
  entry: number,
): void {
  const { names, ipcache } = core
  const { mappings, entries } = names
  const mapping = entries.mapping[entry]!
  const name = mappings.name[mapping]!
  const row = mappings.prefix[mapping]!
  const endpoint = entries.endpoint[entry]!
  const { prefixes } = ipcache
  const [family, octets, addressAt] = [prefixes.family(row), prefixes.octets, row * 16]
  const expired = names.tick() - entries.liveUntil[entry]!
  const table = names.names
  const [wire, nameAt, nameLength] = [
    table.octetsOf(name),
    table.offsetOf(name),
    table.lengthOf(name),
  ]
  const use = { endpoint, family, octets, addressAt, wire, nameAt, nameLength, expired }
  flows.addExpiredUse(clock.wall(), use)
  const fields = {
    endpoint: endpoints.registry.byNumber(endpoint)?.name,
    name: table.format(name),
    address: formatAddress(family, octets, addressAt),
    milliseconds: expired * SECOND_MS,
  }
  log.limited(
    'expired-use',
    fields,
    'a client ignores TTLs: it connected when that of the name was over',
  )
}

interface ConditionParts {
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
/** Error codes with which the kernel reports a full map or set. */
const FULL: ReadonlySet<string> = new Set(['E2BIG', 'ENOSPC', 'ENOMEM', 'ENFILE'])
const LIMITS = {
  prefix: 'limits.pairs',
  policy: 'limits.policy-entries',
  endpoint: 'limits.endpoints',
} as const

/** Reports when a condition begins and when it ends: a server that is down, or entries that the kernel refuses. */
export class ConditionReports {
  readonly #parts: ConditionParts
  readonly #servers: readonly Condition[]
  readonly #kernel = new Condition()

  constructor(parts: ConditionParts) {
    this.#parts = parts
    this.#servers = parts.pool.servers.map(() => new Condition())
  }

  look(): void {
    const now = this.#parts.clock.now()
    this.#parts.emptyDenies.look()
    for (let i = 0; i < this.#servers.length; i++) this.#lookAtServer(i, now)
    // The count of refused entries is final only when no commit is under way.
    if (!this.#parts.committer.isUnderWay) this.#lookAtKernel(now)
  }

  #lookAtServer(i: number, now: number): void {
    const { log, pool } = this.#parts
    const [server, condition] = [pool.servers[i], this.#servers[i]]
    const change = condition?.look(now, pool.isDown(i))
    if (change === undefined || server === undefined) return
    const fields = { server: server.address, port: server.port }
    if (change === 'is well') {
      log.info({ ...fields, milliseconds: condition?.lasted(now) }, 'upstream answers again')
    } else {
      log.warn(fields, pool.servers.every((_, other) => pool.isDown(other)) ? ALL_DOWN : DOWN)
    }
  }

  #lookAtKernel(now: number): void {
    const { log, committer } = this.#parts
    const { refused: count, lastRefused } = committer
    const change = this.#kernel.look(now, count > 0)
    if (change === 'is well') {
      log.info({ milliseconds: this.#kernel.lasted(now) }, 'the kernel takes all entries again')
    } else if (change === 'fails' && lastRefused !== undefined) {
      const { section, code } = lastRefused
      const limit = FULL.has(code) ? LIMITS[section] : undefined
      log.warn({ count, limit, reason: code }, REFUSED)
    }
  }
}

/** What clients cannot do while the socket is missing. */
const MISSED = { admin: 'ask', 'take-over': 'take over' } as const

/** Counts a socket file that was removed and made again. If it cannot be made again, logs the reason at most once a minute. */
export function reportRemovedSocket(
  log: Log,
  putBack: PutBack,
  which: keyof typeof MISSED,
  path: string,
): OnRemoved {
  return (reason) => {
    if (reason === undefined) {
      putBack.add(`${which}-socket`, path)
      return
    }
    const until = `no program can ${MISSED[which]} until namegate makes the socket again`
    log.limited(`${which}-socket`, { path, reason }, `the ${which} socket was removed: ${until}`)
  }
}
