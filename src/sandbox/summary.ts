// `summaryOf` makes the report at the end of a run. It lists the names that were asked, with their verdicts, and the refused connections,
// with the option that would allow each. The report is a table for people, or an object for programs. The functions have no side effects.

import { addressRemedy, allowName } from '../policy/allow-text.ts'
import { ASK_AGAIN, isDnsConnection } from '../policy/dns-connection.ts'
import type { ConnectionRecord, NameRecord, Recorder } from './record.ts'

/** The version of the form of a report. It changes when a key changes its meaning or goes. */
export const REPORT_VERSION = 1
const REFUSED: readonly string[] = ['denied', 'audited']
const OTHER_PROTOCOL =
  'a file for --policy can allow this protocol (toFQDNs or toCIDR without toPorts)'

export interface Summary {
  readonly names: readonly {
    readonly name: string
    /** How many queries were made for the name. */
    readonly asked: number
    readonly verdict: string
    /** The option that would allow the name. Null if the name was not denied, or if only its SRV records were asked. */
    readonly allow: string | null
  }[]
  readonly refused: readonly RefusedConnection[]
  readonly made: readonly {
    readonly address: string
    readonly port: number
    readonly protocol: string
    readonly names: readonly string[]
  }[]
  /** How many observations were not recorded (Recorder.lost). */
  readonly lost: number
}

export interface RefusedConnection {
  readonly address: string
  readonly port: number
  readonly protocol: string
  readonly packets: number
  readonly verdict: 'refused' | 'audited'
  readonly names: readonly string[]
  /** True if the address is guarded: no answer for any name can open it (docs/spec/semantics 4). */
  readonly guarded: boolean
  /** Options that would each allow the connection. Empty for a guarded address, and for a DNS server. */
  readonly allow: readonly string[]
}

/** Returns the report as an object. Names are in the order of the alphabet, connections by their first name and address. */
export function summaryOf({
  names,
  connections,
  lost,
}: Pick<Recorder, 'names' | 'connections' | 'lost'>): Summary {
  const all = [...connections.values()].sort(byPlace)
  return {
    names: [...names.values()].sort(byName).map((record) => {
      const { name, asked, verdict } = record
      return { name, asked, verdict, allow: optionOf(record) }
    }),
    refused: all.flatMap(({ verdict, ...each }) =>
      verdict === 'made' ? [] : [refusedOf({ verdict, ...each }, verdict)],
    ),
    made: all
      .filter(({ verdict }) => verdict === 'made')
      .map(({ address, port, protocol, names: known }) => ({
        address,
        port,
        protocol,
        names: [...known].sort(),
      })),
    lost,
  }
}

function optionOf({ name, verdict, isService }: NameRecord): string | null {
  const isRefused = REFUSED.includes(verdict)
  const line = isRefused && !isService ? allowName(name) : undefined
  return line === undefined ? null : `--allow ${line}`
}

/** Returns true if the report has something that an option would allow, or a refused connection. */
export function hasRefusals({ names, refused }: Summary): boolean {
  return refused.length > 0 || names.some(({ allow }) => allow !== null)
}

/** Returns one line about a refused name or connection, for `--verbose`. */
export function refusalLine(record: NameRecord | ConnectionRecord): string {
  if ('asked' in record) {
    const option = optionOf(record)
    const verb = record.verdict === 'denied' ? 'refused' : 'would refuse'
    return `${verb} name ${record.name}${option === null ? '' : `: ${option}`}`
  }
  const verdict = record.verdict === 'refused' ? 'refused' : 'audited'
  const connection = refusedOf(record, verdict)
  const verb = verdict === 'refused' ? 'refused' : 'would refuse'
  return `${verb} connection ${placeOf(connection)}: ${remedyOf(connection)}`
}

function refusedOf(record: ConnectionRecord, verdict: 'refused' | 'audited'): RefusedConnection {
  const { address, port, protocol, packets, isGuarded: guarded } = record
  const names = [...record.names].sort()
  const usable =
    !guarded && !isDnsConnection(protocol, port) && (protocol === 'TCP' || protocol === 'UDP')
  const places =
    names.length === 0
      ? [placeOf(record)]
      : names.map((name) => `${name}:${port}/${protocol.toLowerCase()}`)
  const allow = usable ? places.map((place) => `--allow ${place}`) : []
  return { address, port, protocol, packets, verdict, names, guarded, allow }
}

function byName(a: NameRecord, b: NameRecord): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function byPlace(a: ConnectionRecord, b: ConnectionRecord): number {
  return keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0
}

function keyOf({ names, address, protocol, port }: ConnectionRecord): string {
  return `${[...names].sort()[0] ?? '~'} ${address} ${protocol} ${String(port).padStart(5, '0')}`
}

/** Returns the title of the table. `isAudited`: the run refused nothing. */
export function summaryTitle(isAudited: boolean): string {
  return isAudited
    ? 'names asked, connections that policy would refuse (--audit refused none)'
    : 'names asked, connections refused'
}

/** Returns the lines of the table, with four cells each: name or connection, verdict, count, and the option that would allow it. */
export function summaryRows({ names, refused }: Summary): readonly (readonly string[])[] {
  return [
    ...names.map(({ name, verdict, asked, allow }) => {
      const remedy = REFUSED.includes(verdict) ? addressRemedy(name) : undefined
      return [name, verdict, String(asked), allow ?? remedy ?? '']
    }),
    ...refused.map((each) => {
      const place = placeOf(each)
      return [place, each.verdict, String(each.packets), remedyOf(each)]
    }),
  ]
}

function placeOf({
  address,
  port,
  protocol,
}: Pick<RefusedConnection, 'address' | 'port' | 'protocol'>): string {
  const host = address.includes(':') ? `[${address}]` : address
  return port === 0 ? `${host} ${protocol}` : `${host}:${port}/${protocol.toLowerCase()}`
}

function remedyOf(connection: RefusedConnection): string {
  const { guarded, allow, names, port, protocol } = connection
  if (isDnsConnection(protocol, port)) return ASK_AGAIN
  if (!guarded) {
    const unknown = names.length === 0 ? ['no name was answered with this address'] : []
    return [...unknown, allow.length === 0 ? OTHER_PROTOCOL : allow.join(' or ')].join(': ')
  }
  const option = port === 0 ? '' : `--allow ${placeOf(connection)}, or `
  return `guarded, so no name opens it: ${option}a file for --policy (toCIDR; toEntities: host for this host)`
}
