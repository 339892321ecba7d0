// `runStatus` runs `namegate status`. The command prints the state of the daemon, as text for people or as JSON.

import type { StatusShape } from '../../admin/shapes.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { fieldsOf, listOf, textOf, type PartOf } from '../fields.ts'
import { cleanCell, formatPairs } from '../table.ts'

export async function runStatus(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('status takes no argument')
  const status: PartOf<StatusShape> = fieldsOf(await (await openClient(read)).get('/v1/status'))
  output.stdout(read.texts.has('output') ? toJson(status) : formatStatus(status))
  return read.flags.has('ready') && status.ready !== true ? EXIT_NEGATIVE : EXIT_OK
}

function formatStatus(status: PartOf<StatusShape>): string {
  const datapath = fieldsOf(status.datapath)
  const endpoints: PartOf<StatusShape['endpoints']> = fieldsOf(status.endpoints)
  const pairs: readonly (readonly [string, string])[] = [
    ['health', textOf(status.health)],
    ['ready', status.ready === true ? 'yes' : `no: ${listOf(status.notReady).join('; ')}`],
    ['version', `${textOf(status.version)}, pid ${textOf(status.pid)}`],
    ['started', textOf(status.started)],
    ['mode', textOf(status.mode)],
    ['datapath', formatDatapath(datapath)],
    [
      'policy',
      `${status.policies === 1 ? '1 policy' : `${textOf(status.policies)} policies`}, revision ${textOf(status.policyRevision)} desired, ${textOf(status.realizedRevision)} realized`,
    ],
    ['endpoints', `${textOf(endpoints.known)} known, ${formatEnforcing(endpoints, datapath)}`],
    ['listeners', listOf(status.listeners).map(textOf).join(', ')],
    ...(typeof status.interception === 'string'
      ? [['interception', status.interception] as const]
      : []),
    ...(status.kept === null || status.kept === undefined
      ? []
      : [['kept', formatKept(fieldsOf(status.kept))] as const]),
    ...restartLine(status.restart),
    ['upstreams', listOf(status.upstreams).map(formatUpstream).join(', ')],
  ]
  const lines = [
    ...listOf(status.limits).map(formatLimit),
    ...listOf(status.faults).map(formatFault),
    ...listOf(status.warnings).map((warning) => `warning: ${textOf(warning)}`),
  ]
  return formatPairs(pairs) + lines.map((line) => `${cleanCell(line)}\n`).join('')
}

function formatDatapath({
  kind,
  revision,
  desiredRevision,
  refused,
  stalled,
  held,
  repaired,
}: PartOf<StatusShape['datapath']>): string {
  const desired = revision === desiredRevision ? '' : ` of ${textOf(desiredRevision)}`
  const waiting = held === 0 ? '' : `, ${textOf(held)} answers held`
  const state = `${textOf(kind)}, revision ${textOf(revision)}${desired}, ${textOf(refused)} entries refused`
  const repairs = repaired === 0 ? '' : `, ${textOf(repaired)} repaired`
  return `${state}${repairs}${waiting}${stalled === true ? ', stalled' : ''}`
}

/** Returns how many endpoints are enforced. The memory datapath sees no packets, so it enforces no endpoint. */
function formatEnforcing(
  { enforcing }: PartOf<StatusShape['endpoints']>,
  { kind }: PartOf<StatusShape['datapath']>,
): string {
  if (kind !== 'memory') return `${textOf(enforcing)} enforcing`
  return 'names are checked, but the memory datapath drops no packets'
}

function formatKept({
  generation,
  image,
  journal,
  age,
  faults,
}: PartOf<NonNullable<StatusShape['kept']>>): string {
  const failed = faults === 0 ? '' : `, ${counted(faults, 'write')} failed`
  const octets = `image ${textOf(image)} octets, journal ${textOf(journal)}`
  const isWritten = image !== 0 || journal !== 0
  const what = isWritten ? `${octets}, written ${textOf(age)} s ago` : 'nothing written yet'
  return `generation ${textOf(generation)}, ${what}${failed}`
}

/** Returns a text such as `1 time` or `2 times`. */
function counted(count: unknown, what: string): string {
  return `${textOf(count)} ${what}${count === 1 ? '' : 's'}`
}

/** Returns the line about the restart. It is shown until the restart is done, when no entry of an earlier daemon is left. */
function restartLine(value: unknown): readonly (readonly [string, string])[] {
  const part: PartOf<NonNullable<StatusShape['restart']>> = fieldsOf(value)
  const { phase, restored, left, claimed, kept } = part
  if (phase === undefined || phase === 'done') return []
  const back = `${textOf(restored)} learned addresses back`
  const more = left === 0 ? '' : `, ${textOf(left)} to come`
  const late = `${textOf(claimed)} taken over from the kernel, ${textOf(kept)} left unchanged`
  return [['restart', `${back}${more}, ${late}`]]
}

function formatUpstream(value: unknown): string {
  const part: PartOf<StatusShape['upstreams'][number]> = fieldsOf(value)
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

function formatLimit(value: unknown): string {
  const part: PartOf<StatusShape['limits'][number]> = fieldsOf(value)
  const { limit, use, bound, hits } = part
  const used = use === null ? `bound ${textOf(bound)}` : `${textOf(use)} of ${textOf(bound)} used`
  return `limit ${textOf(limit)}: ${used}, hit ${counted(hits, 'time')}`
}

function formatFault(value: unknown): string {
  const part: PartOf<StatusShape['faults'][number]> = fieldsOf(value)
  const { file, line, column, message } = part
  return `fault: ${textOf(file)}:${textOf(line)}:${textOf(column)}: ${textOf(message)}`
}
