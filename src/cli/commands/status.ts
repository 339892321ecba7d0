// `runStatus` runs `namegate status`. The command prints the state of the daemon, as text for people or as JSON.

import type { Status } from '../../client/api-types.ts'
import { ConnectionError } from '../../client/connection-error.ts'
import { systemClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { toolRunner } from '../../intercept/tools.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { readConfig } from '../config-file.ts'
import { isNamed } from '../find-daemon.ts'
import { fieldsOf, listOf, numberOf, textOf, type PartOf } from '../fields.ts'
import { relativeTime } from '../relative-time.ts'
import { styleOf, type Look, type Style } from '../style.ts'
import { cleanCell } from '../table.ts'
import { wrapText } from '../wrap.ts'

interface StatusLook {
  readonly style: Style
  /** The width of the terminal in characters. Undefined: lines are not broken. */
  readonly width: number | undefined
  /** Formats a time, which is RFC 3339. */
  readonly time: (text: string) => string
}

export async function runStatus(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('status takes no argument')
  const style = styleOf(read, output)
  if (typeof style === 'string') return read.wrong(style)
  const status = await statusOf(read, output)
  const { terminal } = output
  const now = systemClock.wall()
  const time = (text: string): string => (terminal === undefined ? text : relativeTime(text, now))
  output.stdout(
    read.texts.has('output')
      ? toJson(status)
      : formatStatus(status, { style, width: terminal?.columns, time }),
  )
  return read.flags.has('ready') && status.ready !== true ? EXIT_NEGATIVE : EXIT_OK
}

/**
 * Throws UnavailableError if no daemon runs, or if several run. It names rules that a dead daemon left in force, because they still restrict
 * workloads. If no daemon was named and another one answers, stderr names them.
 */
async function statusOf(read: ParsedArguments, output: CommandOutput): Promise<PartOf<Status>> {
  const abandoned = import('../abandoned.ts')
  const run = toolRunner(TOOL_MS)
  try {
    const { value } = await (await openClient(read)).request('GET /v1/status')
    const left = isNamed(read.texts) ? [] : await (await abandoned).findAbandonedRuns(run)
    for (const { found, remedy } of left) output.stderr(`namegate: ${found}: ${remedy}\n`)
    return value
  } catch (error) {
    if (!isAbsent(error)) throw error
    const config = await readConfig(read.texts.get('config'))
    const found = await (await abandoned).findAbandoned(run, config)
    const lines = found.map((each) => `\n  ${each.found}: ${each.remedy}`)
    throw new UnavailableError(`${error.message}${lines.join('')}`, { cause: error })
  }
}

/** True if no daemon listens at the socket, or if several daemons run and none was named. */
function isAbsent(error: unknown): error is UnavailableError {
  if (error instanceof ConnectionError) return error.failure === 'absent'
  return error instanceof UnavailableError && error.cause === undefined
}

/** How long nft can take. */
const TOOL_MS = 3000

type Line = readonly [name: string, value: string, look?: Look | undefined]

function formatStatus(status: PartOf<Status>, look: StatusLook): string {
  const datapath = fieldsOf(status.datapath)
  const endpoints: PartOf<Status['endpoints']> = fieldsOf(status.endpoints)
  const isReady = status.ready === true
  const pairs: readonly Line[] = [
    ['health', textOf(status.health), status.health === 'ok' ? 'green' : 'red'],
    [
      'ready',
      isReady ? 'yes' : `no: ${listOf(status.notReady).join('; ')}`,
      isReady ? 'green' : 'red',
    ],
    ['version', `${textOf(status.version)}, pid ${textOf(status.pid)}`],
    ['started', look.time(textOf(status.started))],
    ['mode', formatMode(status.mode, datapath), status.mode === 'enforce' ? undefined : 'yellow'],
    ...auditLine(status.audited),
    ['datapath', formatDatapath(datapath)],
    ['policy', formatPolicy(status)],
    ['endpoints', `${textOf(endpoints.known)} known, ${formatEnforcing(endpoints, datapath)}`],
    ['listeners', listOf(status.listeners).map(textOf).join(', ')],
    ...(typeof status.interception === 'string'
      ? [['interception', status.interception] as const]
      : []),
    ...(status.kept === null || status.kept === undefined
      ? []
      : [['saved', formatKept(fieldsOf(status.kept))] as const]),
    ...restartLine(status.restart),
    ['upstreams', listOf(status.upstreams).map(formatUpstream).join(', ')],
  ]
  const lines: readonly Line[] = [
    ...listOf(status.limits).map(formatLimit),
    ...listOf(status.faults).map(formatFault),
    ...listOf(status.warnings).map((warning) => ['warning', textOf(warning), 'yellow'] as const),
  ]
  return formatLines(pairs, look) + lines.map((line) => formatNote(line, look)).join('')
}

/** Returns lines of the form `name:  value`, with the values in one column. A value that is too long for the terminal has several lines. */
function formatLines(pairs: readonly Line[], { style, width }: StatusLook): string {
  const column = Math.max(...pairs.map(([name]) => name.length)) + 3
  return pairs
    .map(([name, value, look]) => {
      const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(1, width - column)
      const lines = wrapText(cleanCell(value), room).map((line) =>
        look === undefined ? line : style(line, look),
      )
      return `${style(`${name}:`, 'bold')}${' '.repeat(column - name.length - 1)}${lines.join(`\n${' '.repeat(column)}`)}\n`
    })
    .join('')
}

/** Returns a line of the form `name: value`, and indented lines for what does not fit. */
function formatNote([name, value, look]: Line, { style, width }: StatusLook): string {
  const room = width === undefined ? Number.POSITIVE_INFINITY : Math.max(1, width - INDENT.length)
  const lines = wrapText(cleanCell(`${name}: ${value}`), room)
  return `${lines.map((line) => (look === undefined ? line : style(line, look))).join(`\n${INDENT}`)}\n`
}

const INDENT = '  '

const MODES: ReadonlyMap<unknown, string> = new Map([
  ['enforce', 'what policy denies is dropped'],
  ['audit', 'what policy denies is allowed and reported'],
  ['bypass', 'everything is allowed'],
])

/** The mode `enforce` of the memory datapath, which sees no packets. */
const NAMES_ONLY = 'queries that policy denies are refused'

function formatMode(mode: unknown, { kind }: PartOf<Status['datapath']>): string {
  const about = mode === 'enforce' && kind === 'memory' ? NAMES_ONLY : MODES.get(mode)
  return about === undefined ? textOf(mode) : `${textOf(mode)}: ${about}`
}

/** How many endpoints the line about audit names. */
const AUDITED_SHOWN = 3

/** Returns the line about audit while it is on, and when it let something pass. A daemon of an earlier version does not count it. */
function auditLine(value: unknown): readonly Line[] {
  const { on, queries, packets, endpoints }: PartOf<Status['audited']> = fieldsOf(value)
  if (on !== true && numberOf(queries) + numberOf(packets) === 0) return []
  const all = listOf(endpoints).map((each) => {
    const row: PartOf<Status['audited']['endpoints'][number]> = fieldsOf(each)
    return `${textOf(row.name)}: ${passed(row)}`
  })
  const shown = [
    ...all.slice(0, AUDITED_SHOWN),
    ...(all.length > AUDITED_SHOWN ? ['and others'] : []),
  ]
  const whose = shown.length === 0 ? '' : ` (${shown.join(', ')})`
  const text = `${on === true ? 'on' : 'off'}: ${counted(queries, 'query')} and ${counted(packets, 'packet')} let pass since the start${whose}`
  return [['audit', text, on === true ? 'yellow' : undefined]]
}

function passed({
  queries,
  packets,
}: Pick<PartOf<Status['audited']>, 'queries' | 'packets'>): string {
  const parts = [counted(queries, 'query'), counted(packets, 'packet')]
  return parts.filter((part) => !part.startsWith('0 ')).join(' and ')
}

function formatPolicy({ policies, policyRevision, realizedRevision }: PartOf<Status>): string {
  const count = policies === 1 ? '1 policy' : `${textOf(policies)} policies`
  if (policyRevision === realizedRevision)
    return `${count} in force, revision ${textOf(policyRevision)}`
  return `${count}, revision ${textOf(realizedRevision)} in force, revision ${textOf(policyRevision)} follows`
}

function formatDatapath({
  kind,
  revision,
  desiredRevision,
  refused,
  stalled,
  held,
  repaired,
}: PartOf<Status['datapath']>): string {
  const at =
    revision === desiredRevision
      ? `has every change, revision ${textOf(revision)}`
      : `has revision ${textOf(revision)} of ${textOf(desiredRevision)}`
  return [
    `${textOf(kind)} ${at}`,
    `${textOf(refused)} entries refused`,
    ...(repaired === 0 ? [] : [`${textOf(repaired)} repaired`]),
    ...(held === 0 ? [] : [`${textOf(held)} answers wait for it`]),
    ...(stalled === true ? ['its last commit takes longer than a second'] : []),
  ].join(', ')
}

/** Returns how many endpoints are enforced. The memory datapath sees no packets, so it enforces no endpoint. */
function formatEnforcing(
  { enforcing }: PartOf<Status['endpoints']>,
  { kind }: PartOf<Status['datapath']>,
): string {
  if (kind !== 'memory') return `${textOf(enforcing)} enforcing`
  return 'names are checked, but the memory datapath drops no packets'
}

function formatKept({ image, journal, age, faults }: PartOf<NonNullable<Status['kept']>>): string {
  const failed = faults === 0 ? '' : `, ${counted(faults, 'write')} failed`
  const octets = numberOf(image) + numberOf(journal)
  const what =
    octets === 0 ? 'nothing yet' : `${counted(octets, 'octet')}, last written ${textOf(age)} s ago`
  return `${what}${failed}`
}

/** Returns a text such as `1 time`, `2 times` or `2 queries`. */
function counted(count: unknown, one: string, many = `${one.replace(/y$/, 'ie')}s`): string {
  return `${textOf(count)} ${count === 1 ? one : many}`
}

/** Returns the line about the restart. It is shown until the restart is done, if an earlier daemon left something. */
function restartLine(value: unknown): readonly (readonly [string, string])[] {
  const part: PartOf<NonNullable<Status['restart']>> = fieldsOf(value)
  if (part.phase === undefined || part.phase === 'done') return []
  const { restored, left, claimed, kept } = part
  const address = ['learned address', 'learned addresses'] as const
  const parts = [
    [restored, `${counted(restored, ...address)} back`],
    [left, `${counted(left, ...address)} to come`],
    [claimed, `${counted(claimed, 'kernel entry')} taken over`],
    [kept, `${counted(kept, 'kernel entry')} left as found`],
  ] as const
  const text = parts.flatMap(([count, words]) => (numberOf(count) > 0 ? [words] : [])).join(', ')
  return text === '' ? [] : [['restart', text]]
}

function formatUpstream(value: unknown): string {
  const part: PartOf<Status['upstreams'][number]> = fieldsOf(value)
  const { address, answered, state, first, rttMs, failures } = part
  if (answered === true) {
    const time = rttMs === null ? '' : ` in ${textOf(rttMs)} ms`
    return `${textOf(address)} answers${time}${first === true ? ', asked first' : ''}`
  }
  if (answered === false) {
    const what = state === 'down' ? 'is down' : 'does not answer'
    return `${textOf(address)} ${what} (${textOf(failures)} failures)`
  }
  return `${textOf(address)} not asked yet`
}

function formatLimit(value: unknown): Line {
  const part: PartOf<Status['limits'][number]> = fieldsOf(value)
  const { limit, use, bound, hits } = part
  const used = use === null ? `bound ${textOf(bound)}` : `${textOf(use)} of ${textOf(bound)} used`
  return [`limit ${textOf(limit)}`, `${used}, hit ${counted(hits, 'time')}`, 'yellow']
}

function formatFault(value: unknown): Line {
  const part: PartOf<Status['faults'][number]> = fieldsOf(value)
  const { file, line, column, message } = part
  const place = `${textOf(file)}:${textOf(line)}:${textOf(column)}`
  return ['fault', `${place}: ${textOf(message)}`, 'red']
}
