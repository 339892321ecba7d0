// What the daemon says in its log of endpoints, their fences, and what policy is worth at the moment.

import type { AdoptionControl } from '../enforcement/adoption-control.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../core/clock.ts'
import { formatAddress } from '../core/ip.ts'
import type { Datapath, Mode } from '../datapath/datapath.ts'
import type { RepairedEntry } from '../datapath/fixture.ts'
import type { Endpoint, EndpointRegistry } from '../endpoints/registry.ts'
import { errnoName } from '../native/native.ts'
import type { Log } from '../telemetry/log.ts'

const SECOND_MS = 1000

/** Tells which open flows are spared, after all of them were looked for. */
export function tellAdopted(
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

/** Tells of endpoints that are fenced now, and warns of those that should be and are not. */
export function tellHooks(
  log: Log,
  datapath: Datapath,
  registry: EndpointRegistry,
  endpoints: Iterable<number>,
): void {
  for (const id of endpoints) {
    const endpoint: Endpoint | undefined = registry.byNumber(id)
    if (endpoint === undefined || endpoint.hook.kind === 'none') continue
    const hook = datapath.hookState(endpoint.id)
    const fields = { endpoint: endpoint.name, hook }
    if (hook.kind === 'attached') log.info(fields, 'endpoint is fenced')
    else if (hook.kind !== 'unfenced') log.warn(fields, 'endpoint is not fenced')
  }
}

export function tellMode(log: Log, mode: Mode): void {
  if (mode === 'enforce') log.info({ mode }, 'mode changed')
  else log.warn({ mode }, 'mode changed: policy denies nothing')
}

/** Somebody else changed `count` entries of the kernel, and they were put right. */
export function tellRepaired(log: Log, first: RepairedEntry, count: number): void {
  const { map, key, want, have } = first
  const fault = `${map} ${key}: found ${have ?? 'nothing'}, expected ${want ?? 'nothing'}`
  log.warn({ fault, count }, 'somebody else changed entries of the kernel: repaired')
}

/** Sources fell silent, or (none) were heard again. */
export function tellSilence(log: Log, silent: readonly string[], then: string): void {
  if (silent.length === 0) log.info({}, 'all sources are heard again')
  else log.warn({ name: silent.join(', '), reason: `sources.then is ${then}` }, SILENCE)
}

const SILENCE = 'sources are silent for longer than sources.max-age'

/** Peers of deny rules began to select nothing, or select something again. */
export function tellEmptyDenies(log: Log, texts: readonly string[]): void {
  const [fault] = texts
  const count = texts.length
  if (fault === undefined) log.info({ count }, 'all peers of deny rules select something again')
  else
    log.warn({ fault, count }, 'peers of deny rules select nothing: what they name is not denied')
}

/** `count` identities had to stand in for others of late. */
export function tellFallbacks(log: Log, count: number): void {
  const message =
    'identities of answers are used up: addresses get fewer labels than their names have'
  log.limited('identity-budget', { count }, message)
}

interface ExpiredUseTold {
  readonly core: CoreState
  readonly endpoints: { readonly registry: EndpointRegistry }
  readonly flows: FlowRing
  readonly clock: Clock
}

/** Records that a client connected to an address when the TTL of the entry's name was over, and logs one in a minute. */
export function tellExpiredUse(
  { core, endpoints, flows, clock }: ExpiredUseTold,
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
