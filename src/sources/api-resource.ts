// Makes, stores and reads one resource of the admin API. The stored form is the request body that would make the resource again, with its
// end. The end is stored twice: in seconds since boot, because no program can set that clock, and as wall-clock time, which is used after a
// reboot. The reader of request bodies also reads the stored form, so that an edited file can do no more than a request.

import type { BootClock } from '../core/clock.ts'
import { formatPrefix } from '../core/ip.ts'
import { isMapping } from '../documents/source-document.ts'
import { formatDuration } from '../core/quantity.ts'
import { SCTP, TCP, UDP } from '../core/protocol.ts'
import { parseResourceObject, type ResourceRecord } from '../endpoints/resources.ts'
import { splitLabel } from '../policy/match/labels.ts'

const SECOND_MS = 1000
/** Used in faults of the API instead of the name of a file. */
export const API_PLACE = 'admin API'

export interface ApiResource {
  readonly record: ResourceRecord
  /** The record as text. Equal records have equal texts. */
  readonly text: string
  /** The TTL in milliseconds. Undefined: the resource has no end. */
  readonly ttl: number | undefined
  /** The end on the daemon's clock. Infinity: the resource has no end. */
  readonly due: number
}

export interface Clocks {
  now(): number
  wall(): number
}

/** The current boot of the machine, and its clock. */
export interface Boot extends BootClock {
  /** The boot id in hexadecimal. Zeros when the kernel does not report an id. */
  readonly id: string
}

export function toApiResource(
  record: ResourceRecord,
  ttl: number | undefined,
  clock: Clocks,
  left = ttl,
): ApiResource {
  const text = JSON.stringify(bodyOf(record))
  if (ttl === undefined || left === undefined) {
    return { record, text, ttl: undefined, due: Number.POSITIVE_INFINITY }
  }
  return { record, text, ttl, due: clock.now() + left }
}

/** The end in milliseconds of the present wall clock. Undefined: the resource has no end. */
export function expiryOf({ due }: ApiResource, clock: Clocks): number | undefined {
  return Number.isFinite(due) ? Math.round(clock.wall() + due - clock.now()) : undefined
}

/** Formats the stored form: one line of JSON. */
export function formatKept(resource: ApiResource, clock: Clocks, boot: Boot): string {
  const { record, ttl, due } = resource
  const body = { name: record.name, ...bodyOf(record) }
  const expiry = expiryOf(resource, clock)
  if (ttl === undefined || expiry === undefined) return JSON.stringify(body)
  const until = boot.seconds() + (due - clock.now()) / SECOND_MS
  const expires = new Date(expiry).toISOString()
  return JSON.stringify({ ...body, ttl: formatDuration(ttl), expires, boot: boot.id, until })
}

export type KeptResource =
  | { readonly kind: 'ok'; readonly resource: ApiResource }
  | { readonly kind: 'over'; readonly name: string }
  /** `name` is absent if the stored form has none. */
  | { readonly kind: 'bad'; readonly name?: string; readonly reason: string }

/** Reads the stored form. The resource ends one TTL from now at the latest, also if the wall clock was changed. */
export function parseKept(kept: unknown, clock: Clocks, now: Boot): KeptResource {
  if (!isMapping(kept)) return { kind: 'bad', reason: 'found no resource, expected one' }
  const { name, expires, boot, until, ...body } = kept
  if (typeof name !== 'string') return { kind: 'bad', reason: 'found no name, expected one' }
  const { resource: record, ttl, faults } = parseResourceObject(name, body, API_PLACE)
  if (record === undefined) {
    return { kind: 'bad', name, reason: `${name}: ${faults[0]?.message ?? ''}` }
  }
  if (ttl === undefined && expires === undefined) {
    return { kind: 'ok', resource: toApiResource(record, undefined, clock) }
  }
  const expiry = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
  if (ttl === undefined || Number.isNaN(expiry)) {
    return { kind: 'bad', name, reason: `${name}: expected ttl and expires, a time, together` }
  }
  const isThisBoot = boot === now.id && /[^0]/.test(now.id) && typeof until === 'number'
  const rest = isThisBoot ? (until - now.seconds()) * SECOND_MS : expiry - clock.wall()
  const left = Math.min(ttl, rest)
  if (left <= 0) return { kind: 'over', name }
  return { kind: 'ok', resource: toApiResource(record, ttl, clock, left) }
}

const PROTOCOLS: ReadonlyMap<number, string> = new Map([
  [TCP, 'TCP'],
  [UDP, 'UDP'],
  [SCTP, 'SCTP'],
])

function bodyOf({ addresses, labels, ports = [] }: ResourceRecord): object {
  const body = {
    addresses: addresses.map(formatPrefix).sort(),
    labels: Object.fromEntries(labels.map(labelEntry)),
  }
  if (ports.length === 0) return body
  const texts = ports.map(({ name, port, protocol }) => {
    return [name, `${port}/${PROTOCOLS.get(protocol) ?? ''}`] as const
  })
  return { ...body, ports: Object.fromEntries(texts.sort(([a], [b]) => (a < b ? -1 : 1))) }
}

function labelEntry(text: string): readonly [key: string, value: string] {
  const { source, key, value } = splitLabel(text)
  return [`${source}:${key}`, value]
}
